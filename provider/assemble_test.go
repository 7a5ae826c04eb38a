package provider_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

func ExampleAssemble() {
	stream := `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\":"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

`
	answer, err := provider.Assemble(strings.NewReader(stream), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range answer.Message.Calls() {
		fmt.Println(c.ID, c.Name, c.Arguments, answer.Reason)
	}
	// Output:
	// c1 add {"a":1} tool_calls
}

func TestAssembler(t *testing.T) {
	t.Parallel()
	a := provider.NewAssembler(nil)
	text := ""
	for _, chunk := range []string{`{"choices":[{"delta":{"content":"Hel"}}]}`, `not json`, `{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}`, `[DONE]`} {
		buf := []byte(chunk)
		deltas, err := a.Append(buf)
		if err != nil {
			t.Fatal(err)
		}
		clear(buf) // which is not kept
		for _, d := range deltas {
			text += d.Text
		}
	}
	f, err := a.Finish()
	if err != nil || !a.Done() || text != "Hello" || f.Message.Text() != "Hello" || f.Reason != lathe.FinishStop || len(f.Faults) == 0 {
		t.Errorf("got %q, %+v, %v", text, f, err)
	}
}

// Errors are those of this module: of the server, of a limit, of a stream that breaks off or cannot be read.
func TestAssembleErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream string
		opts   *provider.AssemblerOptions
		code   lathe.Code
	}{
		"server":    {"data: {\"error\":{\"message\":\"boom\",\"code\":503}}\n\n", nil, lathe.CodeUpstream},
		"event":     {"event: error\ndata: {\"message\":\"boom\"}\n\n", nil, lathe.CodeUpstream},
		"broke off": {"data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n", nil, lathe.CodeUpstreamProtocol},
		"too large": {"data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n", &provider.AssemblerOptions{MaxBytes: 2}, lathe.CodeUpstreamProtocol},
	} {
		f, err := provider.Assemble(strings.NewReader(c.stream), c.opts)
		if f != nil || lathe.CodeOf(err) != c.code {
			t.Errorf("%s: got %+v, %v", name, f, err)
		}
		var up *lathe.UpstreamError
		if errors.As(err, &up) != (c.code == lathe.CodeUpstream) {
			t.Errorf("%s: an upstream error: %+v", name, up)
		}
	}
	if f, err := provider.Assemble(iotest.ErrReader(errors.New("reset")), nil); f != nil || lathe.CodeOf(err) != lathe.CodeUpstreamProtocol {
		t.Errorf("got %+v, %v", f, err)
	}
}
