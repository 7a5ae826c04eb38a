// Command everything serves the tools, resources and prompts that the conformance suite of the protocol asks
// for, each with the name and the answer that its scenarios want. It prints its address.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// A funcTool is a tool whose calls call do.
type funcTool struct {
	spec lathe.ToolSpec
	do   func(ctx context.Context, args json.RawMessage) (*lathe.Output, error)
}

func (f *funcTool) Spec() *lathe.ToolSpec { return &f.spec }

func (f *funcTool) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	return f.do(ctx, args)
}

// newTool returns a tool; schema "" allows any arguments.
func newTool(name, description, schema string, do func(context.Context, json.RawMessage) (*lathe.Output, error)) lathe.Tool {
	if schema == "" {
		schema = anything
	}
	return &funcTool{lathe.ToolSpec{Name: name, Description: description, Schema: json.RawMessage(schema), Effect: lathe.ReadOnly,
		Allowlist: []string{"*"}, Origin: "everything"}, do}
}

// says returns a function that always returns the text and the blobs.
func says(text string, blobs ...lathe.Blob) func(context.Context, json.RawMessage) (*lathe.Output, error) {
	return func(context.Context, json.RawMessage) (*lathe.Output, error) {
		out := &lathe.Output{Blobs: blobs}
		if text != "" {
			out.Data, _ = json.Marshal(text)
		}
		return out, nil
	}
}

// slow returns a function that returns text after a time, which must be longer than ProgressEvery and shorter than the scenarios wait.
func slow(takes time.Duration, text string) func(context.Context, json.RawMessage) (*lathe.Output, error) {
	return func(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return says(text)(ctx, args)
	}
}

func decode(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

const (
	redDot  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
	schema  = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`
)

func tools() []lathe.Tool {
	image := lathe.Blob{MediaType: "image/png", Data: decode(redDot)}
	text := func(s string) lathe.Blob {
		return lathe.Blob{MediaType: "text/plain", Name: "test://embedded-resource", Data: []byte(s)}
	}
	return []lathe.Tool{
		newTool("test_simple_text", "Says one text.", "", says("This is a simple text response for testing.")),
		newTool("test_image_content", "Shows an image.", "", says("", image)),
		newTool("test_audio_content", "Plays a sound.", "", says("", lathe.Blob{MediaType: "audio/wav", Data: decode(silence)})),
		newTool("test_embedded_resource", "Holds a resource.", "", says("", text("This is an embedded resource content."))),
		newTool("test_multiple_content_types", "Holds a text, an image and a resource.", "", says("Multiple content types test:", image,
			lathe.Blob{MediaType: "application/json", Name: "test://mixed-content-resource", Data: []byte(`{"test":"data","value":123}`)})),
		newTool("test_tool_with_logging", "Takes its time, and its events are logged.", "", slow(100*time.Millisecond, "done")),
		newTool("test_logging_tool", "Takes its time, and its events are logged.", "", slow(100*time.Millisecond, "done")),
		newTool("test_tool_with_progress", "Takes its time.", "", slow(400*time.Millisecond, "done")),
		newTool("test_error_handling", "Fails.", "", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{IsError: true, Data: json.RawMessage(`"This tool intentionally returns an error for testing"`)}, nil
		}),
		newTool("json_schema_2020_12_tool", "Has a schema of many keywords.", schema, says("ok")),
		newTool("test_x_mcp_header", "Has an argument that stands in a header, too.",
			`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`, says("ok")),
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "everything:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all := slices.Concat(tools(), asking(), lasting())
	var server atomic.Pointer[mcp.Server]
	set, err := tool.NewSet()
	if err != nil {
		return err
	}
	hasExtraTool := false
	all = append(all, newTool("test_trigger_tool_change", "Changes the list of tools.", "", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		hasExtraTool = !hasExtraTool
		now := all
		if hasExtraTool {
			now = append(now[:len(now):len(now)], newTool("test_extra", "Comes and goes.", "", says("ok")))
		}
		if err := set.Replace("everything", now); err != nil {
			return nil, err
		}
		server.Load().Refresh()
		return says("changed")(ctx, nil)
	}))
	hasExtraPrompt := false
	all = append(all, newTool("test_trigger_prompt_change", "Changes the list of prompts.", "", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		hasExtraPrompt = !hasExtraPrompt
		if err := server.Load().Offer(catalog(hasExtraPrompt)); err != nil {
			return nil, err
		}
		return says("changed")(ctx, nil)
	}))
	if err := set.Replace("everything", all); err != nil {
		return err
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		return err
	}
	s := mcp.New(runner, &mcp.Options{ProgressEvery: 60 * time.Millisecond, Tasks: taskRules})
	server.Store(s)
	if err := s.Offer(catalog(false)); err != nil {
		return err
	}
	defer s.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", ln.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() {
		s.Close()
		_ = srv.Close()
	})
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
