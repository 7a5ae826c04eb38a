package doctor_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/lab/doctor"
)

// What vendors sent is judged by what is in it: each recording is the answer to the streamed tool
// call, and everything else comes from a server without faults.
func TestDoctorJudgesRecordedStreams(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "recorded-streams")
	files, err := filepath.Glob(filepath.Join(dir, "*tool-call.chunks.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no recordings")
	}
	want := map[string]string{
		"xai__xai-tool-call": "reasoning-content", "openai-compatible__chat__xai-tool-call": "reasoning-content",
		"mistral__mistral-tool-call": "index-missing type-missing", "mistral__mistral-incremental-tool-call": "role-missing",
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".chunks.txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var stream strings.Builder
			for line := range strings.Lines(string(b)) {
				stream.WriteString("data: " + strings.TrimSpace(line) + "\n\n")
			}
			stream.WriteString("data: [DONE]\n\n")
			answer := strings.NewReplacer(`"weather"`, `"save_note"`, `"webSearchTool"`, `"save_note"`).Replace(stream.String())
			clean := overSim(func(http.Header, []byte) (int, string) { return 0, "" })
			rep := run(t, doctor.Target{Transport: tripper(func(path string, h http.Header, body []byte) (int, string, string) {
				if bytes.Contains(body, []byte(`"stream":true`)) && bytes.Contains(body, []byte("two apples")) && !bytes.Contains(body, []byte(`"max_tokens":16`)) && !bytes.Contains(body, []byte(`"role":"tool"`)) {
					return 200, "text/event-stream", answer
				}
				return clean(path, h, body)
			})})
			got := slices.DeleteFunc(ids(rep), func(id string) bool { return id == "max-tokens-ignored" })
			if s := strings.Join(got, " "); s != want[name] {
				t.Errorf("found %q, want %q", s, want[name])
			}
		})
	}
}
