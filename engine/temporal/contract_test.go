package temporal

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

func contract(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/contract/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A worker in another language gets the input in testdata/contract and may return the outputs there.
func TestContractOfQueueTools(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ result, content string }{
		"output.json": {"a ok", `{"degrees":4}`},
		"error.json":  {"a invalid_arguments", `{"error":"no such city"}`},
	} {
		q, err := NewQueueTool(&lathe.ToolSpec{Name: "weather", Description: "Returns the weather of a city.", Effect: lathe.ReadOnly, Allowlist: []string{"degrees", "error"},
			Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}, &QueueOptions{TaskQueue: "weather"})
		if err != nil {
			t.Fatal(err)
		}
		m := calls("a weather")
		c := m.Parts[0].(lathe.ToolCall)
		c.Arguments = `{"city":"Oslo"}`
		m.Parts[0] = c
		w := newWorld(t, script{m, lathe.Assistant("done")}, nil, q)
		var got string
		w.env.RegisterActivityWithOptions(func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
			var sent CallInput
			if err := json.Unmarshal(in, &sent); err != nil {
				return nil, err
			}
			b, err := json.MarshalIndent(in, "", "  ")
			got = strings.Replace(string(b), sent.IdempotencyKey, "KEY", 1) + "\n"
			if err != nil || sent.IdempotencyKey == "" {
				return nil, err
			}
			return json.RawMessage(contract(t, name)), nil
		}, registerAs("weather"))
		if out, err := w.start(); err != nil || out.Reason != lathe.ReasonAnswered {
			t.Fatalf("%+v, %v", out, err)
		}
		w.check()
		if input := contract(t, "input.json"); got != input {
			t.Errorf("the activity got\n%s, want\n%s", got, input)
		}
		if r := w.state().Messages[2].Parts[0].(lathe.ToolResult); w.results() != want.result || !strings.Contains(r.Content, want.content) {
			t.Errorf("%s: results %s, the model got %s", name, w.results(), r.Content)
		}
	}
}

// The TypeScript example serves the contract, in the SDK of Temporal for TypeScript. Its packages are installed by `make
// temporalexample`.
func TestTypeScriptExample(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("examples/typescript/node_modules/@temporalio"); err != nil {
		t.Skip("examples/typescript/node_modules is missing: make temporalexample")
	}
	cmd := exec.Command("npm", "test", "--silent")
	cmd.Dir = "examples/typescript"
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "# pass 2") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The activity of the Python example serves the contract. The package temporalio is replaced by one with the names that the example
// uses: the test needs neither the SDK nor a Temporal server, and does not connect.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/temporalio", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"__init__": "",
		"activity": "beats = 0\ndef defn(name):\n  def named(f):\n    f.activity = name\n    return f\n  return named\ndef heartbeat():\n  global beats\n  beats += 1\n",
		"client":   "class Client: pass\n",
		"worker":   "class Worker: pass\n",
	} {
		if err := os.WriteFile(dir+"/temporalio/"+name+".py", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const program = `import asyncio, json, sys, worker
from temporalio import activity
print(json.dumps([worker.weather.activity, asyncio.run(worker.weather(json.load(sys.stdin))), activity.beats]))`
	for city, name := range map[string]string{"Oslo": "output.json", "Paris": "error.json"} {
		cmd := exec.Command(python, "-B", "-c", program)
		cmd.Dir, cmd.Env = "examples/python", append(os.Environ(), "PYTHONPATH="+dir)
		cmd.Stdin = strings.NewReader(strings.Replace(contract(t, "input.json"), "Oslo", city, 1))
		out, err := cmd.CombinedOutput()
		var got, want any
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if wrong := json.Unmarshal([]byte(`["weather",`+contract(t, name)+`,1]`), &want); wrong != nil {
			t.Fatal(wrong)
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v: %s, want %v", city, err, out, want)
		}
	}
}
