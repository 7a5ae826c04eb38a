package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

const calculates = `call: calculator {"expression":"6 * 7"}` + "\n"
const asksWeather = `call: weather {"city":"Oslo"}` + "\n"

// Without tools of its own the gateway passes the calls of the client's tools on, and mends what is
// damaged on the way: official clients read what they could not read of the model server itself.
func TestGatewayMendsTheWire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte("tools: {builtin: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := server(t, "serve", "--config", path, "--addr", "127.0.0.1:0")
	for _, e := range everyClient {
		switch e.model {
		case "sim/fault-type-missing":
			e.fails = nil
		case "sim/fault-status-401":
			e.fails = map[string]string{"*": "400"} // it is the operator's key, not the client's
		}
		t.Run(e.model, func(t *testing.T) {
			t.Parallel()
			runGo(t.Context(), base, e.model).check(t, e)
		})
	}
}
