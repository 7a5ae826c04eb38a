package provider_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// A trip is a transport in this process.
type trip func(r *http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// accept reads the request's body, as a transport with a connection does.
func accept(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	r.Body.Close()
}

func respond(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
}

// piped answers with what write writes, until the request's context ends.
func piped(write func(w io.Writer)) trip {
	return func(r *http.Request) (*http.Response, error) {
		accept(r)
		pr, pw := io.Pipe()
		stop := context.AfterFunc(r.Context(), func() { pw.CloseWithError(context.Cause(r.Context())) })
		go func() {
			write(pw)
			stop()
			pw.Close()
		}()
		return respond(pr), nil
	}
}

func open(t testing.TB, rt http.RoundTripper, change func(*provider.Options)) *provider.Chat {
	t.Helper()
	o := &provider.Options{BaseURL: "http://model.test", Transport: rt, Retry: provider.Retry{Jitter: func() float64 { return 0.5 }}}
	if change != nil {
		change(o)
	}
	c, err := provider.OpenAI("m", o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// endTime is how long a server may be silent after its finish reason.
const endTime = 10 * time.Second

func TestTimeouts(t *testing.T) {
	t.Parallel()
	silent := trip(func(r *http.Request) (*http.Response, error) {
		accept(r)
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	unconnected := trip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		r.Body.Close()
		return nil, r.Context().Err()
	})
	every := func(d time.Duration, n int, then time.Duration) trip {
		return piped(func(w io.Writer) {
			for range n {
				time.Sleep(d)
				if _, err := io.WriteString(w, data(text("x"))); err != nil {
					return
				}
			}
			time.Sleep(then)
			_, _ = io.WriteString(w, data(finished("stop"), done))
		})
	}
	for _, c := range []struct {
		name    string
		rt      trip
		change  func(*provider.Options)
		after   time.Duration
		connect bool
		kind    lathe.UpstreamKind // "" for an answer
		cause   string
		retries int
	}{
		{"no response: client timeout by default", silent, nil, 120 * time.Second, false, lathe.UpstreamTimeout, "client_timeout", 0},
		{"no response", silent, func(o *provider.Options) { o.Timeouts.Read = 7 * time.Second }, 7 * time.Second, false, lathe.UpstreamTimeout, "read_timeout", 0},
		{"no connection", unconnected, nil, 30*time.Second + 750*time.Millisecond, true, lathe.UpstreamTimeout, "open_timeout", 2},
		{"no connection, one attempt", unconnected, func(o *provider.Options) { o.Timeouts.Open = time.Second; o.Retry.Attempts = 1 },
			time.Second, true, lathe.UpstreamTimeout, "open_timeout", 0},
		{"the read timeout waits for the connection", unconnected, func(o *provider.Options) { o.Timeouts.Read = time.Second; o.Retry.Attempts = 1 },
			10 * time.Second, true, lathe.UpstreamTimeout, "open_timeout", 0},
		{"silence within the answer", every(4*time.Second, 5, time.Hour), func(o *provider.Options) { o.Timeouts.Read = 5 * time.Second },
			25 * time.Second, false, lathe.UpstreamTimeout, "read_timeout", 0},
		{"silence shorter than the timeout", every(4*time.Second, 5, 4*time.Second), func(o *provider.Options) { o.Timeouts.Read = 5 * time.Second },
			24 * time.Second, false, "", "", 0},
		{"silence in place of the end mark", piped(func(w io.Writer) {
			_, _ = io.WriteString(w, data(text("x"), finished("stop")))
			time.Sleep(time.Hour)
		}), nil, endTime, false, "", "", 0},
		{"silence in place of the end mark, without a read timeout", piped(func(w io.Writer) {
			_, _ = io.WriteString(w, data(text("x"), finished("stop")))
			time.Sleep(time.Hour)
		}), func(o *provider.Options) { o.Timeouts.Read = -1 }, endTime, false, "", "", 0},
		{"an answer that moves has no time limit", every(time.Second, 10_000, 0), nil, 10_000 * time.Second, false, "", "", 0},
		{"an answer that moves and then stops", every(time.Second, 200, time.Hour), nil, 320 * time.Second, false, lathe.UpstreamTimeout, "read_timeout", 0},
		{"comments before the first delta", piped(func(w io.Writer) {
			for range 1000 {
				time.Sleep(time.Second)
				if _, err := io.WriteString(w, ": still reading the prompt\n\n"); err != nil {
					return
				}
			}
		}), nil, 120 * time.Second, false, lathe.UpstreamTimeout, "client_timeout", 0},
		{"all off", every(24*time.Hour, 3, 24*time.Hour), func(o *provider.Options) { o.Timeouts.Client, o.Timeouts.Open, o.Timeouts.Read = -1, -1, -1 },
			96 * time.Hour, false, "", "", 0},
		{"client timeout off, read timeout on", every(time.Second, 300, time.Hour), func(o *provider.Options) { o.Timeouts.Client, o.Timeouts.Read = -1, 9*time.Second },
			309 * time.Second, false, lathe.UpstreamTimeout, "read_timeout", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				chat := open(t, c.rt, c.change)
				start := time.Now()
				a := ask(t, t.Context(), chat)
				if got := time.Since(start); got != c.after {
					t.Errorf("it took %v, want %v", got, c.after)
				}
				time.Sleep(1000 * time.Hour) // for the server to end
				if len(a.retries) != c.retries || a.kind() != c.kind {
					t.Fatalf("got %d retries, %v", len(a.retries), a.err)
				}
				if c.kind == "" {
					return
				}
				up := a.upstream(t)
				if up.Connect != c.connect || up.Retryable != c.connect || !strings.Contains(up.Message, c.cause) || lathe.CodeOf(a.err) != lathe.CodeUpstream {
					t.Errorf("got %v (%+v), want %s", a.err, up, c.cause)
				}
			})
		})
	}
}

func TestTimeOfTheConsumerIsNoSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, piped(func(w io.Writer) { _, _ = io.WriteString(w, hello()) }), func(o *provider.Options) { o.Timeouts.Read = time.Second })
		n := 0
		for d, err := range c.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind == lathe.DeltaText {
				n++
				time.Sleep(10 * time.Second)
			}
		}
		if n != 2 {
			t.Errorf("got %d deltas", n)
		}
	})
}

// A stale timer of one call must not end the next one on the same conversation.
func TestTimersDoNotReachTheNextCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, piped(func(w io.Writer) {
			time.Sleep(700 * time.Millisecond)
			_, _ = io.WriteString(w, hello())
		}), func(o *provider.Options) { o.Timeouts.Client = time.Second })
		for range 5 {
			if a := ask(t, t.Context(), c); a.text != "Hello" {
				t.Errorf("got %q, %v", a.text, a.err)
			}
		}
	})
}

// The timers of one call do not end the next one early, nor keep it from its own timeouts.
func TestTimerOfTheCallBeforeFiresForTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := open(t, trip(func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 3 {
				accept(r)
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			}
			return piped(func(w io.Writer) { _, _ = io.WriteString(w, hello()) })(r)
		}), func(o *provider.Options) {
			o.Timeouts.Open, o.Timeouts.Read, o.Retry.Attempts = 30*time.Second, 10*time.Second, 1
		})
		for range 2 {
			if a := ask(t, t.Context(), c); a.text != "Hello" {
				t.Fatalf("got %q, %v", a.text, a.err)
			}
			time.Sleep(7 * time.Second) // the timer of the first call fires during the third, or between two calls
		}
		start := time.Now()
		a := ask(t, t.Context(), c)
		if took := time.Since(start); took != 10*time.Second || a.err == nil || !strings.Contains(a.err.Error(), "timeout") {
			t.Errorf("the silent call ended after %v: %v", took, a.err)
		}
	})
}

func TestWaitsBetweenAttempts(t *testing.T) {
	t.Parallel()
	status := func(code int, header ...string) trip {
		return func(r *http.Request) (*http.Response, error) {
			accept(r)
			h := http.Header{}
			if len(header) == 2 {
				h.Set(header[0], header[1])
			}
			return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader("{}"))}, nil
		}
	}
	const half = 250 * time.Millisecond // of the first wait, times the jitter of 0.5
	for _, c := range []struct {
		name   string
		rt     trip
		change func(*provider.Options)
		want   []time.Duration
	}{
		{"doubling", status(500), func(o *provider.Options) { o.Retry.Attempts = 7 }, []time.Duration{half, 2 * half, 4 * half, 8 * half, 4 * time.Second, 4 * time.Second}},
		{"no jitter to speak of", status(500), func(o *provider.Options) { o.Retry.Jitter = func() float64 { return 0 } }, []time.Duration{0, 0}},
		{"the server's wish in seconds", status(429, "Retry-After", "3"), nil, []time.Duration{3 * time.Second, 3 * time.Second}},
		{"the server's wish in milliseconds", status(503, "Retry-After-Ms", "20"), nil, []time.Duration{20 * time.Millisecond, 20 * time.Millisecond}},
		{"the longest wish", status(429, "Retry-After", "30"), func(o *provider.Options) { o.Retry.Attempts = 2 }, []time.Duration{30 * time.Second}},
		{"a wish above it", status(429, "Retry-After", "31"), nil, nil},
		{"a wish beyond the client timeout", status(429, "Retry-After", "20"), func(o *provider.Options) { o.Timeouts.Client = 30 * time.Second }, []time.Duration{20 * time.Second}},
		{"a date", status(429, "Retry-After", "Sat, 01 Jan 2000 00:00:09 GMT"), func(o *provider.Options) { o.Retry.Attempts = 2 }, []time.Duration{9 * time.Second}},
		{"a date in the past", status(429, "Retry-After", "Fri, 31 Dec 1999 00:00:09 GMT"), func(o *provider.Options) { o.Retry.Attempts = 2 }, []time.Duration{half}},
		{"one attempt", status(500), func(o *provider.Options) { o.Retry.Attempts = 1 }, nil},
		{"negative attempts", status(500), func(o *provider.Options) { o.Retry.Attempts = -1 }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				a := ask(t, t.Context(), open(t, c.rt, c.change))
				var got []time.Duration
				var sum time.Duration
				for _, r := range a.retries {
					got = append(got, r.Wait)
					sum += r.Wait
				}
				if len(got) != len(c.want) {
					t.Fatalf("got waits %v, want %v", got, c.want)
				}
				for i := range got {
					if got[i] != c.want[i] {
						t.Fatalf("got waits %v, want %v", got, c.want)
					}
				}
				if took := time.Since(start); took != sum {
					t.Errorf("it took %v, want %v", took, sum)
				}
				if a.upstream(t).Status == 0 {
					t.Errorf("got %v", a.err)
				}
			})
		})
	}
}

// The same over net/http's transport and a connection in memory: nothing of it stays behind, or
// the bubble could not end.
func TestTimeoutsOverHTTP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		serve func(net.Conn) // nil: no server answers the dial
		kind  lathe.UpstreamKind
		after time.Duration
	}{
		{"dial hangs", nil, lathe.UpstreamTimeout, 10 * time.Second},
		{"header hangs", func(net.Conn) {}, lathe.UpstreamTimeout, 20 * time.Second},
		{"header comes byte by byte, then hangs", func(conn net.Conn) {
			for _, b := range []byte("HTTP/1.1 200 OK\r\nConte") {
				time.Sleep(500 * time.Millisecond)
				_, _ = conn.Write([]byte{b})
			}
		}, lathe.UpstreamTimeout, 20 * time.Second},
		{"body hangs", func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+data(text("x")))
		}, lathe.UpstreamTimeout, 20 * time.Second},
		{"body ends within a chunk", func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n"+data(text("x")))
			conn.Close()
		}, lathe.UpstreamAborted, 0},
		{"answer", func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+hello())
			conn.Close()
		}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rt := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					if c.serve == nil {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					client, server := net.Pipe()
					go func() {
						r, err := http.ReadRequest(bufio.NewReader(server))
						if err != nil {
							return
						}
						_, _ = io.Copy(io.Discard, r.Body)
						c.serve(server)
						_, _ = io.Copy(io.Discard, server) // until the client hangs up
						server.Close()
					}()
					return client, nil
				}}
				defer rt.CloseIdleConnections()
				start := time.Now()
				a := ask(t, t.Context(), open(t, rt, func(o *provider.Options) { o.Timeouts.Read = 20 * time.Second; o.Retry.Attempts = 1 }))
				if a.kind() != c.kind {
					t.Errorf("got %v", a.err)
				}
				if got := time.Since(start); got != c.after {
					t.Errorf("it took %v, want %v", got, c.after)
				}
			})
		})
	}
}

func TestCancellationWhileWaitingForTheResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, trip(func(r *http.Request) (*http.Response, error) {
			accept(r)
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(io.ErrNoProgress) })
		a := ask(t, ctx, c)
		if lathe.CodeOf(a.err) != lathe.CodeCancelled || a.kind() != "" {
			t.Errorf("got %v", a.err)
		}
	})
}
