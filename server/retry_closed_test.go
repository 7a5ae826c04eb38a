package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/store"
)

// However a client that has read the whole answer closes its connection: the same request, sent on purpose, gets a run of its
// own, with a model call and a mail.
func TestClosedConnectionDoesNotUndoDelivery(t *testing.T) {
	t.Parallel()
	const rounds = 30
	for _, head := range []string{
		"HTTP/1.0\r\n",                         // curl --http1.0
		"HTTP/1.1\r\nConnection: close\r\n",    // urllib
		"HTTP/1.1\r\n",                         // curl: the client closes without a word
		"HTTP/1.1\r\nExpect: 100-continue\r\n", // curl with a long body
	} {
		for _, stream := range []bool{false, true} {
			name := fmt.Sprintf("%q stream %v", head, stream)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := serveRetries(t, &mailer{}, &postOffice{}, newMortal(store.NewMemory(nil)), nil)
				runs := map[string]bool{}
				for range rounds {
					answer, run := r.readAndClose(head, mailBody(stream, ""))
					if !strings.Contains(answer, "The tools said") {
						t.Fatalf("the answer is %q", answer)
					}
					runs[run] = true
				}
				if len(runs) != rounds {
					t.Errorf("%d requests got the answers of %d runs", rounds, len(runs))
				}
				r.wantMails(rounds)
			})
		}
	}
}

// readAndClose sends a request on a connection of its own, reads the answer to its last byte and closes the connection at once.
func (r *retries) readAndClose(head, body string) (answer, runID string) {
	r.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(r.t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset, which the server sees at once
	}
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions %sHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		head, r.key, len(body), body)
	if err != nil {
		r.t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	for err == nil && resp.StatusCode == http.StatusContinue {
		resp, err = http.ReadResponse(in, nil)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b), resp.Header.Get("X-Lathe-Run-Id")
}
