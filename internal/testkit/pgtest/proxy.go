package pgtest

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A Proxy forwards connections between a store and its server, and breaks them as a test requests.
type Proxy struct {
	// URL is that of the database, through the proxy.
	URL string

	listener        net.Listener
	network, server string // the address of the server

	mu    sync.Mutex
	conns map[net.Conn]bool // to clients and to the server
	down  bool
	cut   func(answer []byte) bool // of CutAnswers, or nil
	wait  sync.WaitGroup
}

// NewProxy starts a proxy of the server of a URL, on a port of its own, for one test.
func NewProxy(tb testing.TB, direct string) *Proxy {
	tb.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		tb.Fatal("pgtest: no URL")
	}
	cfg, err := pgx.ParseConfig(direct)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	p := &Proxy{URL: u.String(), listener: l, conns: map[net.Conn]bool{}}
	p.network, p.server = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	p.wait.Go(p.accept)
	tb.Cleanup(func() {
		_ = l.Close() // which ends accept
		p.Down()
		p.wait.Wait()
	})
	return p
}

// Down cuts all connections and makes no new ones, until Up.
func (p *Proxy) Down() { p.set(true) }

// Up lets connections through again.
func (p *Proxy) Up() { p.set(false) }

func (p *Proxy) set(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if down {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// CutAnswers makes the proxy close a connection instead of forwarding an answer of the server for which cut
// returns true: the server has executed the statement, and the client gets no answer. cut may be called by
// several goroutines at once. nil forwards all answers.
func (p *Proxy) CutAnswers(cut func(answer []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

// accept connects each client to the server, until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		down := p.down
		p.mu.Unlock()
		if down { // the server forks for each connection, which would starve the other clients of a test
			_ = client.Close()
			continue
		}
		server, err := new(net.Dialer).Dial(p.network, p.server)
		if err != nil {
			_ = client.Close() // the server is down
			continue
		}
		p.mu.Lock()
		if p.down {
			_, _ = client.Close(), server.Close()
		} else {
			p.conns[client], p.conns[server] = true, true
			p.wait.Go(func() { p.copy(server, client, func([]byte) bool { return false }) })
			p.wait.Go(func() { p.copy(client, server, p.cutsAnswer) })
		}
		p.mu.Unlock()
	}
}

// cutsAnswer reports whether the proxy closes the connection instead of forwarding an answer.
func (p *Proxy) cutsAnswer(answer []byte) bool {
	p.mu.Lock()
	cut := p.cut
	p.mu.Unlock()
	return cut != nil && cut(answer)
}

// copy forwards bytes until either connection is closed, or until cuts returns true for the next bytes.
func (p *Proxy) copy(to, from net.Conn, cuts func([]byte) bool) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil || cuts(b[:n]) {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
