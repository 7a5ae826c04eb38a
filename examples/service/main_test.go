package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/testdata"
)

// The test starts itself as the service.
func TestMain(m *testing.M) {
	if os.Getenv("SERVICE_OF_TEST") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a process of the service.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	base string // the address of its endpoints
}

// start starts the service and waits until it is ready.
func start(t *testing.T, file, payments string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-addr", "127.0.0.1:0", "-store", file, "-payments", payments)
	cmd.Env = append(os.Environ(), "SERVICE_OF_TEST=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd}
	t.Cleanup(p.kill)
	lines := bufio.NewScanner(stderr)
	var log strings.Builder
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if _, after, ok := strings.Cut(lines.Text(), " INFO ready addr="); ok {
			addr, _, _ := strings.Cut(after, " ")
			p.base = "http://" + addr
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return p
		}
	}
	t.Fatalf("the service is not ready:\n%s", &log)
	return nil
}

// kill ends the process without notice (SIGKILL).
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// call sends a request and returns the status and the whole answer.
func (p *process) call(method, path, body string, header ...string) (status int, answer string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// waiting returns the calls that wait for an approval.
func (p *process) waiting() (requests []approval.Request) {
	p.t.Helper()
	_, answer := p.call(http.MethodGet, "/waiting", "")
	var list struct{ Waiting []approval.Request }
	if err := json.Unmarshal([]byte(answer), &list); err != nil {
		p.t.Fatalf("%v: %s", err, answer)
	}
	return list.Waiting
}

// ask asks for a refund and returns the request for its approval.
func (p *process) ask() approval.Request {
	p.t.Helper()
	status, events := p.call(http.MethodPost, "/ask", `Please refund the order "A-17".`)
	// The deltas may be over before the service follows the run: the text is in the end of the turn, too.
	if status != http.StatusOK || !strings.Contains(events, "Let me use refund.") || !strings.Contains(events, "event: RunPaused\n") {
		p.t.Fatalf("status %d, events:\n%s", status, events)
	}
	waiting := p.waiting()
	if len(waiting) != 1 || waiting[0].Tool != "refund" || string(waiting[0].Arguments) != `{"number":"A-17"}` {
		p.t.Fatalf("waiting: %+v", waiting)
	}
	return waiting[0]
}

// The payment service refuses a refund: the call fails, and the model reads the status.
func TestRefundIsRefused(t *testing.T) {
	t.Parallel()
	testdata.NeedLong(t)
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	p := start(t, filepath.Join(t.TempDir(), "service.db"), srv.URL)
	request := p.ask()
	if status, answer := p.call(http.MethodPost, "/approve/"+request.Digest, "", "X-User", "ann"); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, answer)
	}
	_, events := p.call(http.MethodGet, "/runs/"+request.RunID, "", "Last-Event-ID", "7")
	if !strings.Contains(events, "execution_failed") || !strings.Contains(events, "the payment service answered 404 Not Found") {
		t.Errorf("events:\n%s", events)
	}
}

// paymentService records the orders that are refunded. If begun is set, it does not answer: it sends on begun, and waits until the client
// has gone.
func paymentService(t *testing.T, begun chan<- struct{}) (url string, refunded func() []string) {
	t.Helper()
	orders := make(chan string, 8)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		order, _ := io.ReadAll(r.Body)
		orders <- string(order)
		if begun != nil {
			begun <- struct{}{}
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "refunded")
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() (all []string) {
		for len(orders) > 0 {
			all = append(all, <-orders)
		}
		return all
	}
}

func TestAnswersAQuestion(t *testing.T) {
	t.Parallel()
	testdata.NeedLong(t)
	p := start(t, filepath.Join(t.TempDir(), "service.db"), "")
	_, events := p.call(http.MethodPost, "/ask", `What is the state of the order "A-17"?`)
	if !strings.Contains(events, "event: RunFinished\n") || !strings.Contains(events, "delivered") {
		t.Errorf("events:\n%s", events)
	}
	if _, text := p.call(http.MethodGet, "/metrics", ""); !strings.Contains(text, `find_order`) {
		t.Error("the metrics do not contain the tool")
	}
	for _, path := range []string{"GET /runs/none", "POST /approve/none"} {
		method, path, _ := strings.Cut(path, " ")
		if status, answer := p.call(method, path, ""); status != http.StatusNotFound {
			t.Errorf("%s: status %d: %s", path, status, answer)
		}
	}
}

// A process is killed while a call waits for an approval. The next one lists the request, and executes the call once it is approved.
func TestKilledWhileACallWaits(t *testing.T) {
	t.Parallel()
	testdata.NeedLong(t)
	for verb, want := range map[string]int{"approve": 1, "deny": 0} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "service.db")
			payments, refunded := paymentService(t, nil)
			p := start(t, file, payments)
			request := p.ask()
			p.kill()

			p = start(t, file, payments)
			if waiting := p.waiting(); len(waiting) != 1 || waiting[0].Digest != request.Digest {
				t.Fatalf("waiting: %+v", waiting)
			}
			if status, answer := p.call(http.MethodPost, "/"+verb+"/"+request.Digest, "", "X-User", "ann"); status != http.StatusOK {
				t.Fatalf("status %d: %s", status, answer)
			}
			_, events := p.call(http.MethodGet, "/runs/"+request.RunID, "", "Last-Event-ID", "7") // those after RunPaused
			if strings.Contains(events, "event: RunPaused\n") || !strings.Contains(events, "event: RunFinished\n") || !strings.Contains(events, `"ann"`) {
				t.Errorf("events:\n%s", events)
			}
			if status, _ := p.call(http.MethodPost, "/approve/"+request.Digest, ""); status != http.StatusConflict && status != http.StatusNotFound { // not found: the run has ended
				t.Errorf("a second approval: status %d", status)
			}
			p.kill()
			p = start(t, file, payments)
			if waiting := p.waiting(); len(waiting) != 0 {
				t.Errorf("waiting: %+v", waiting)
			}
			if all := refunded(); len(all) != want || want == 1 && all[0] != "A-17" {
				t.Errorf("refunded %q, want %d", all, want)
			}
		})
	}
}

// A process is killed while the payment service executes a refund. The next one does not repeat it, and the model reads that its outcome
// is unknown.
func TestKilledInARefund(t *testing.T) {
	t.Parallel()
	testdata.NeedLong(t)
	file := filepath.Join(t.TempDir(), "service.db")
	begun := make(chan struct{}, 8) // a repeated refund does not block
	payments, refunded := paymentService(t, begun)
	p := start(t, file, payments)
	request := p.ask()
	if status, answer := p.call(http.MethodPost, "/approve/"+request.Digest, ""); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, answer)
	}
	<-begun
	p.kill()

	p = start(t, file, payments)
	_, events := p.call(http.MethodGet, "/runs/"+request.RunID, "")
	if !strings.Contains(events, "event: RunFinished\n") || !strings.Contains(events, `"error_type":"interrupted"`) {
		t.Errorf("events:\n%s", events)
	}
	if all := refunded(); len(all) != 1 {
		t.Errorf("refunded %q", all)
	}
	if waiting := p.waiting(); len(waiting) != 0 {
		t.Errorf("waiting: %+v", waiting)
	}
}
