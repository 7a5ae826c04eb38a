package temporal

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/lathe-run/lathe"
)

// flip stands for an encryption: nothing can be read in what it has encoded.
type flip struct{}

func (flip) Encode(in []*commonpb.Payload) ([]*commonpb.Payload, error) { return flipAll(in), nil }
func (flip) Decode(in []*commonpb.Payload) ([]*commonpb.Payload, error) { return flipAll(in), nil }

func flipAll(in []*commonpb.Payload) []*commonpb.Payload {
	out := make([]*commonpb.Payload, len(in))
	for i, p := range in {
		out[i] = &commonpb.Payload{Metadata: p.Metadata, Data: make([]byte, len(p.Data))}
		for k, b := range p.Data {
			out[i].Data[k] = ^b
		}
	}
	return out
}

// Large payloads are in the folder and not in the history, small ones and what another codec has written pass, and all is encrypted
// where that is wanted.
func TestCodec(t *testing.T) {
	t.Parallel()
	for _, encrypt := range []converter.PayloadCodec{nil, flip{}} {
		dir := t.TempDir()
		blobs, err := NewDirectory(dir)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewCodec(&CodecOptions{Blobs: blobs, Limit: 100, Encrypt: encrypt})
		if err != nil {
			t.Fatal(err)
		}
		words := []string{"small secret", strings.Repeat("large secret ", 1_000)}
		dc := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)
		for range 2 { // the second time the file is there
			for i, w := range words {
				p, err := dc.ToPayload(w)
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Data) > 200 || (encrypt != nil || i == 1) && strings.Contains(string(p.Data), "secret") {
					t.Errorf("the history has %q", p.Data)
				}
				var got string
				if err := dc.FromPayload(p, &got); err != nil || got != w {
					t.Errorf("got %.40q, %v", got, err)
				}
			}
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 {
			t.Fatalf("the folder has %v, %v", files, err)
		}
		name := filepath.Join(dir, files[0].Name())
		kept, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(kept), "secret") == (encrypt != nil) {
			t.Errorf("the file has %.60q, %v", kept, err)
		}
		p, err := dc.ToPayload(words[1])
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := os.WriteFile(name, append(kept, 'x'), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := dc.FromPayload(p, &got); err == nil || !strings.Contains(err.Error(), "its hash differs") {
			t.Errorf("a file that was changed: %v", err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := dc.FromPayload(p, &got); err == nil || !strings.Contains(err.Error(), "is not there") {
			t.Errorf("a file that is gone: %v", err)
		}
	}
}

func TestCodecRefuses(t *testing.T) {
	t.Parallel()
	blobs, err := NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]*CodecOptions{"nothing": nil, "empty": {}, "negative": {Blobs: blobs, Limit: -1}} {
		if c, err := NewCodec(opts); c != nil || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	c, err := NewCodec(&CodecOptions{Blobs: blobs})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Encode([]*commonpb.Payload{{Data: make([]byte, MaxBlob+1)}}); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("a payload above MaxBlob: %v", err)
	}
	for _, data := range []string{``, `{}`, `{"sha256":"../../etc/passwd"}`, `{"sha256":"` + strings.Repeat("a", 62) + `"}`, `[`} {
		p := &commonpb.Payload{Metadata: map[string][]byte{encodingKey: []byte(referenceEncoding)}, Data: []byte(data)}
		if _, err := c.Decode([]*commonpb.Payload{p}); lathe.CodeOf(err) != lathe.CodeInternal {
			t.Errorf("the reference %s: %v", data, err)
		}
	}
	plain, err := NewCodec(&CodecOptions{Encrypt: flip{}})
	if err != nil {
		t.Fatal(err)
	}
	p := &commonpb.Payload{Metadata: map[string][]byte{encodingKey: []byte(referenceEncoding)}, Data: []byte(`{}`)}
	if _, err := plain.Decode([]*commonpb.Payload{p}); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("a reference without Blobs: %v", err)
	}
}

// A run whose tool on a task queue has large arguments and outputs works with the codec.
func TestRunWithCodec(t *testing.T) {
	t.Parallel()
	blobs, err := NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCodec(&CodecOptions{Blobs: blobs, Limit: 1_000, Encrypt: flip{}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, script{calls("a remote"), lathe.Assistant("done")}, nil, newQueued(t, "remote", lathe.Writes))
	w.env.SetDataConverter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c))
	large := strings.Repeat("x", 5_000)
	w.serve("remote", func(context.Context, *CallInput) (*CallResult, error) {
		return &CallResult{Data: json.RawMessage(`{"shown":"` + large + `"}`)}, nil
	})
	if out, err := w.start(); err != nil || out.Reason != lathe.ReasonAnswered {
		t.Fatalf("%+v, %v", out, err)
	}
	w.check()
	if got := w.state().Messages[2].Parts[0].(lathe.ToolResult).Content; !strings.Contains(got, large) {
		t.Errorf("the model got %d bytes", len(got))
	}
}
