package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lathe-run/lathe/bench/internal/load"
	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/bench/internal/proxy"
)

// A variant is one kind of request.
type variant struct {
	api    string // chat, responses or messages
	stream bool
	tool   bool // the gateway executes one call
}

func (v variant) String() string {
	name := v.api + map[bool]string{false: ", whole", true: ", streamed"}[v.stream]
	if v.tool {
		name += ", with a call"
	}
	return name
}

var variants = []variant{{"chat", false, false}, {"chat", true, false}, {"responses", false, false}, {"responses", true, false},
	{"messages", false, false}, {"messages", true, false}, {"chat", false, true}}

// A gateway is one contender. It is started for a round and stopped after it.
type gateway struct {
	name   string
	run    func(port string) (env []string, path string, args []string) // nil: the model server itself
	header http.Header
	// form says what becomes of requests of each API: "" if it is not served, "same" if the gateway passes them on in the same protocol, else
	// what it translates them to.
	form map[string]string
	// models are the names to ask for, by API: gpt-4o-mini unless another is listed.
	models map[string]string
	tool   bool // it executes the call of the seventh variant, and serves nothing else
}

const (
	same       = "same"
	translated = "translated to chat completions"
	key        = "sk-bench-test-key"
)

// gateways returns the contenders: lathe at path, and the peers whose paths are not empty.
func gateways(dir, upstream, path, gomodel, portkey string) ([]*gateway, error) {
	relay, err := write(dir, "relay.yaml", `tools: {builtin: []}
models:
  gpt-4o-mini: {base_url: "`+upstream+`/v1"}
  responses: {base_url: "`+upstream+`/v1", wire: responses, model: gpt-4o-mini}
  messages: {base_url: "`+upstream+`/v1", wire: anthropic, model: claude-sonnet-4-5}
`)
	if err != nil {
		return nil, err
	}
	tools, err := write(dir, "tools.yaml", `tools: {builtin: [calculator]}
models:
  gpt-4o-mini: {base_url: "`+upstream+`/v1"}
`)
	if err != nil {
		return nil, err
	}
	lathe := func(config string) func(string) ([]string, string, []string) {
		return func(port string) ([]string, string, []string) {
			// Nothing is recorded, as in the published entries of the others.
			return nil, path, []string{"serve", "--config", config, "--addr", "127.0.0.1:" + port, "--log", "error", "--store", "none"}
		}
	}
	all := []*gateway{
		{name: "direct", form: map[string]string{"chat": same, "responses": same, "messages": same}},
		{name: "lathe", run: lathe(relay), form: map[string]string{"chat": same, "responses": same, "messages": same}, models: map[string]string{"responses": "responses", "messages": "messages"}},
		{name: "lathe, one model", run: lathe(relay), form: map[string]string{"responses": translated, "messages": translated}},
		{name: "lathe, with tools", run: lathe(tools), form: map[string]string{"chat": same}, tool: true},
	}
	if gomodel != "" {
		all = append(all, &gateway{name: "GoModel", form: map[string]string{"chat": same, "responses": same, "messages": translated},
			run: func(port string) ([]string, string, []string) { // the settings of the published entry
				return []string{"PORT=" + port, "GOMODEL_MASTER_KEY=", "OPENAI_API_KEY=" + key, "OPENAI_BASE_URL=" + upstream + "/v1", "LOGGING_ENABLED=false", "USAGE_ENABLED=false",
					"METRICS_ENABLED=false", "SWAGGER_ENABLED=false", "PPROF_ENABLED=false", "ENABLE_PASSTHROUGH_ROUTES=false", "RETRY_MAX_RETRIES=0",
					"CIRCUIT_BREAKER_FAILURE_THRESHOLD=1000000000", "STORAGE_TYPE=sqlite", "SQLITE_PATH=" + filepath.Join(dir, "gomodel.db"), "GOMODEL_CACHE_DIR=" + dir}, gomodel, nil
			}})
	}
	if portkey != "" {
		all = append(all, &gateway{name: "Portkey", form: map[string]string{"chat": same, "responses": same},
			header: http.Header{"X-Portkey-Provider": {"openai"}, "X-Portkey-Custom-Host": {upstream + "/v1"}},
			run: func(port string) ([]string, string, []string) {
				return []string{"TRUSTED_CUSTOM_HOSTS=127.0.0.1"}, "node", []string{portkey, "--port=" + port, "--headless"}
			}})
	}
	return all, nil
}

func write(dir, name, text string) (string, error) {
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// start starts the gateway and waits for the first answer.
func (g *gateway) start() (*proc.Process, error) {
	port, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	first := variants[0]
	for _, v := range variants { // of those that it serves
		if g.form[v.api] != "" {
			first = v
			break
		}
	}
	first.tool = g.tool
	env, path, args := g.run(port)
	return proc.StartServer(g.name, "http://127.0.0.1:"+port, env, func(base string) bool {
		c := g.client(base, first)
		defer c.HTTP.CloseIdleConnections()
		_, err := c.Do()
		return err == nil
	}, path, args...)
}

// serves reports whether the gateway takes part in a variant.
func (g *gateway) serves(v variant) bool { return g.form[v.api] != "" && g.tool == v.tool }

func (g *gateway) client(base string, v variant) *load.Client {
	const prompt = "Say hello for a benchmark test."
	model := g.models[v.api]
	if model == "" {
		model = "gpt-4o-mini"
	}
	paths := map[string]string{"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
	inputs := map[string]string{"chat": `"messages":[{"role":"user","content":"` + prompt + `"}]`, "responses": `"input":"` + prompt + `"`,
		"messages": `"max_tokens":256,"messages":[{"role":"user","content":"` + prompt + `"}]`}
	end := `"usage"`
	if v.stream {
		end = map[string]string{"chat": "[DONE]", "responses": `"response.completed"`, "messages": `"message_stop"`}[v.api]
	}
	header := http.Header{"Authorization": {"Bearer " + key}}
	if v.api == "messages" {
		header.Set("Anthropic-Version", "2023-06-01")
	}
	for name, values := range g.header {
		header[name] = values
	}
	return &load.Client{HTTP: &http.Client{Transport: proxy.Transport(), Timeout: 30 * time.Second}, URL: base + paths[v.api], Header: header, Stream: v.stream, End: end,
		Body: fmt.Sprintf(`{"model":%q,"stream":%v,%s}`, model, v.stream, inputs[v.api])}
}

// notServed names the APIs that a gateway does not serve here.
func (g *gateway) notServed() string {
	var missing []string
	for _, api := range []string{"chat", "responses", "messages"} {
		if g.form[api] == "" {
			missing = append(missing, api)
		}
	}
	return strings.Join(missing, ", ")
}
