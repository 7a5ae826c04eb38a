package server

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// idleConns bounds the connections of a server between two requests: each of them costs a descriptor and
// some 20 KB. Beyond the bound the one that has been idle longest is closed.
type idleConns struct {
	most int

	mu    sync.Mutex
	of    map[net.Conn]*list.Element
	order *list.List // of net.Conn, the longest idle first
}

func newIdleConns(most int) *idleConns {
	return &idleConns{most: most, of: map[net.Conn]*list.Element{}, order: list.New()}
}

// changed is the server's ConnState.
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
		_ = over.Close() // its client opens another one
	}
}
