package server

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// idleConns bounds the number of connections without a request in progress: each of them costs a descriptor and about 20
// KB. If there are more than most, it closes the one that has been idle longest.
type idleConns struct {
	most int

	mu    sync.Mutex
	of    map[net.Conn]*list.Element
	order *list.List // elements are net.Conn, the one idle longest first
}

func newIdleConns(most int) *idleConns {
	return &idleConns{most: most, of: map[net.Conn]*list.Element{}, order: list.New()}
}

// changed is the ConnState callback of the http.Server: it tracks idle connections, and closes the one idle longest if
// there are more than most.
func (c *idleConns) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	if e := c.of[conn]; e != nil {
		c.order.Remove(e)
		delete(c.of, conn)
	}
	var over net.Conn
	if state == http.StateIdle {
		c.of[conn] = c.order.PushBack(conn)
		if c.order.Len() > c.most {
			over = c.order.Remove(c.order.Front()).(net.Conn)
			delete(c.of, over)
		}
	}
	c.mu.Unlock()
	if over != nil {
		_ = over.Close() // its client will open a new connection
	}
}
