package guest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/wasmrt"
)

// A hostCall implements one function that guests import. It reads its parameters from c in the order of the import and returns the
// result.
type hostCall func(c *call) int32

// A call is one call of a host function by a guest. docs/internals/guest-abi.md names the parameters, which arg and word return by index.
type call struct {
	ctx   context.Context
	p     *program
	inst  *wasmrt.Instance
	stack []uint64
	err   error // ends the guest if it is not nil
}

func (c *call) arg(i int) int32   { return wasmrt.Int32(c.stack[i]) }
func (c *call) word(i int) uint32 { return wasmrt.Uint32(c.stack[i]) }

// imports returns the module `spear`.
func imports() wasmrt.HostModule {
	m := wasmrt.HostModule{Name: "spear"}
	add := func(name string, params int, fn hostCall) {
		f := wasmrt.HostFunc{Name: name, Results: i32}
		for range params {
			f.Params = append(f.Params, wasmrt.I32)
		}
		f.Fn = func(ctx context.Context, inst *wasmrt.Instance, stack []uint64) error {
			c := &call{ctx: ctx, p: inst.Data().(*program), inst: inst, stack: stack}
			c.p.inst = inst // the start section runs before Run has the instance
			rc := fn(c)
			if c.err != nil {
				return c.err
			}
			stack[0] = wasmrt.FromInt32(rc)
			return nil
		}
		m.Funcs = append(m.Funcs, f)
	}
	add("cchat_create", 0, (*call).create)
	add("cchat_write_msg", 5, (*call).writeMessage)
	add("cchat_write_fn", 4, (*call).writeFunction)
	add("cchat_ctl", 4, (*call).control)
	add("cchat_send", 2, (*call).send)
	add("cchat_recv", 3, (*call).receive)
	add("cchat_close", 1, (*call).close)
	add("spear_epoll_create", 0, (*call).epollCreate)
	add("spear_epoll_ctl", 4, func(c *call) int32 { return c.p.fds.control(c.arg(0), c.arg(1), c.arg(2), c.word(3)) })
	add("spear_epoll_wait", 4, (*call).epollWait)
	add("spear_epoll_close", 1, (*call).epollClose)
	add("spear_fd_ctl", 4, (*call).fdControl)
	add("log", 3, (*call).log)
	for name, params := range absent {
		add(name, params, func(*call) int32 { return -enosys })
	}
	number := func(name string, read func(inst *wasmrt.Instance) (int64, error)) {
		m.Funcs = append(m.Funcs, wasmrt.HostFunc{Name: name, Results: []wasmrt.ValueType{wasmrt.I64},
			Fn: func(_ context.Context, inst *wasmrt.Instance, stack []uint64) error {
				n, err := read(inst)
				stack[0] = uint64(n)
				return err
			}})
	}
	number("time_now_ms", func(inst *wasmrt.Instance) (int64, error) { return inst.Now().UnixMilli(), nil })
	number("wall_time_s", func(inst *wasmrt.Instance) (int64, error) { return inst.Now().Unix(), nil })
	number("random_i64", func(inst *wasmrt.Instance) (n int64, err error) {
		var b [8]byte
		err = inst.Random(b[:])
		return int64(binary.LittleEndian.Uint64(b[:])), err
	})
	m.Funcs = append(m.Funcs, wasmrt.HostFunc{Name: "sleep_ms", Params: i32, Fn: func(_ context.Context, inst *wasmrt.Instance, stack []uint64) error {
		inst.Sleep(time.Duration(max(wasmrt.Int32(stack[0]), 0)) * time.Millisecond)
		return nil
	}})
	return m
}

// absent are functions for speech, microphone and streams, with the number of their parameters. They exist so that modules with these
// imports can be loaded, and return -ENOSYS.
var absent = map[string]int{
	"rtasr_create": 0, "rtasr_ctl": 4, "rtasr_write": 3, "rtasr_read": 3, "rtasr_close": 1,
	"mic_create": 0, "mic_ctl": 4, "mic_read": 3, "mic_close": 1,
	"user_stream_open": 2, "user_stream_read": 3, "user_stream_write": 3, "user_stream_close": 1,
	"user_stream_ctl_open": 0, "user_stream_ctl_read": 3,
}

// text returns a copy of n bytes at ptr, in which U+FFFD replaces invalid UTF-8. rc is 0, -EFAULT or -ENOMEM.
func (c *call) text(ptr, n uint32) (text string, rc int32) {
	b, rc := c.bytes(ptr, n)
	if rc != 0 {
		return "", rc
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), 0
}

// bytes returns a view of n bytes at ptr, which is valid until the guest runs again. rc is 0, -EFAULT, or -ENOMEM above maxCallBytes.
func (c *call) bytes(ptr, n uint32) (b []byte, rc int32) {
	b, err := c.inst.Memory().Read(ptr, n)
	switch {
	case err != nil:
		return nil, -efault
	case n > maxCallBytes:
		return nil, -enomem
	}
	return b, 0
}

// argument returns a copy of the argument of cchat_ctl and spear_fd_ctl. The word at lenPtr is its length.
func (c *call) argument(ptr, lenPtr uint32) (b []byte, rc int32) {
	n, err := c.inst.Memory().ReadUint32(lenPtr)
	if err != nil {
		return nil, -efault
	}
	text, rc := c.text(ptr, n)
	return []byte(text), rc
}

// reply writes b to the buffer at ptr and returns its length. The word at lenPtr is the size of the buffer, and reply replaces it by the
// length of b. If the buffer is too small, it writes only that length and returns -ENOSPC.
func (c *call) reply(ptr, lenPtr uint32, b []byte) int32 {
	mem := c.inst.Memory()
	capacity, err := mem.ReadUint32(lenPtr)
	switch {
	case err != nil:
		return -efault
	case uint64(capacity) < uint64(len(b)):
		if mem.WriteUint32(lenPtr, uint32(len(b))) != nil {
			return -efault
		}
		return -enospc
	case mem.Write(ptr, b) != nil || mem.WriteUint32(lenPtr, uint32(len(b))) != nil:
		return -efault
	}
	return int32(len(b))
}

func (c *call) create() int32 {
	s := &session{mcp: newMCPState(&c.p.opts.MCP), params: params{limits: map[string]int64{}, forward: map[string]json.RawMessage{}}}
	fd := c.p.fds.add(&entry{session: s})
	if fd > 0 {
		c.p.ids++
		s.id = fmt.Sprintf("%s_%d", c.p.id, c.p.ids)
	}
	return fd
}

func (c *call) writeMessage() int32 {
	role, rc := c.text(c.word(1), c.word(2))
	if rc != 0 {
		return rc
	}
	content, rc := c.text(c.word(3), c.word(4))
	if rc != 0 {
		return rc
	}
	return c.grow(len(content), func(s *session) int32 { return s.write(role, content) })
}

// grow calls do, which adds n bytes to the session of the first parameter, if SessionBytes allows n more bytes. It returns the result of
// do, -EBADF, -EAGAIN during a send, or -ENOMEM.
func (c *call) grow(n int, do func(s *session) int32) int32 {
	s := c.p.fds.at(c.arg(0)).session
	n += perItem
	switch {
	case s == nil:
		return -ebadf
	case s.sending:
		return -eagain
	case !c.p.reserve(n):
		return -enomem
	}
	rc := do(s)
	if rc != 0 {
		c.p.bytes -= n
		return rc
	}
	s.size += n
	return 0
}

func (c *call) writeFunction() int32 {
	text, rc := c.text(c.word(2), c.word(3))
	if rc != 0 {
		return rc
	}
	return c.grow(len(text), func(s *session) int32 {
		if s.offered >= c.p.limits.SessionTools {
			return -enomem
		}
		s.offered++
		if why := s.register(c.p, c.arg(1), []byte(text)); why != "" {
			c.p.note(fmt.Sprintf("function %d of the session was passed over: %s", s.offered, why))
		} else if why := s.uncallable(c.p); why != "" {
			c.p.note(why)
		}
		return 0
	})
}

// note logs a message of the runtime about the guest. It counts towards the guest's LogBytes.
func (p *program) note(text string) {
	if p.reserveLog(len(text)) && p.opts.Log != nil {
		p.opts.Log("warn", text)
	}
}

// reserveLog adds n bytes to the size of the log. It returns false if that exceeds LogBytes.
func (p *program) reserveLog(n int) bool {
	if p.logged += n; p.logged > p.limits.LogBytes {
		p.logged = p.limits.LogBytes
		return false
	}
	return true
}

func (c *call) control() int32 {
	const setParam, getMetrics = 1, 2
	fd := c.arg(0)
	switch c.arg(1) {
	case setParam:
		arg, rc := c.argument(c.word(2), c.word(3))
		if rc != 0 {
			return rc
		}
		key, value, ok := readParam(arg)
		if !ok {
			return -eio
		}
		if c.p.fds.at(fd).response != nil {
			return 0
		}
		return c.grow(len(arg), func(s *session) int32 { return s.set(key, value, &c.p.opts.MCP) })
	case getMetrics:
		r := c.p.fds.at(fd).response
		if r == nil {
			return -ebadf
		}
		return c.reply(c.word(2), c.word(3), r.metrics)
	}
	return -einval
}

func (c *call) send() int32 {
	fd, err := c.p.send(c.ctx, c.arg(0), c.arg(1))
	c.err = err
	return fd
}

func (c *call) receive() int32 {
	r := c.p.fds.at(c.arg(0)).response
	if r == nil {
		return -ebadf
	}
	return c.reply(c.word(1), c.word(2), r.body)
}

func (c *call) close() int32 {
	fd := c.arg(0)
	e := c.p.fds.open[fd]
	switch {
	case e == nil:
		return -ebadf
	case e.session != nil && e.session.sending:
		return -eagain
	case e.session != nil:
		c.p.bytes -= e.session.size
	case e.response != nil:
		c.p.bytes -= perItem + len(e.response.body)
	}
	delete(c.p.fds.open, fd)
	return 0
}

func (c *call) epollCreate() int32 {
	return c.p.fds.add(&entry{epoll: &epoll{watch: map[int32]uint32{}}})
}

func (c *call) epollClose() int32 {
	if c.p.fds.at(c.arg(0)).epoll == nil {
		return -ebadf
	}
	return c.close()
}

// epollWait implements spear_epoll_wait and returns the number of ready descriptors. No descriptor becomes ready during the wait, because
// the guest has one thread, and sends are complete when they return. So it checks once, and then sleeps.
func (c *call) epollWait() int32 {
	const record = 8
	mem := c.inst.Memory()
	capacity, err := mem.ReadUint32(c.word(2))
	if err != nil {
		return -efault
	}
	if capacity < record {
		if mem.WriteUint32(c.word(2), record) != nil {
			return -efault
		}
		return -enospc
	}
	ep := c.p.fds.at(c.arg(0)).epoll
	if ep == nil {
		return -ebadf
	}
	ready := c.p.fds.wait(ep)
	if len(ready) == 0 {
		switch timeout := c.arg(3); {
		case timeout < 0:
			<-c.ctx.Done()
			c.err = c.ctx.Err()
			return 0
		case timeout > 0:
			c.inst.Sleep(time.Duration(timeout) * time.Millisecond)
		}
	}
	ready = ready[:min(len(ready), int(capacity/record))]
	var b []byte
	for _, r := range ready {
		b = binary.LittleEndian.AppendUint32(b, uint32(r.fd))
		b = binary.LittleEndian.AppendUint32(b, r.events)
	}
	if mem.Write(c.word(1), b) != nil || mem.WriteUint32(c.word(2), uint32(len(b))) != nil {
		return -efault
	}
	return int32(len(ready))
}

func (c *call) fdControl() int32 {
	const setFlags, getFlags, getKind, getStatus, getMetrics = 1, 2, 3, 4, 5
	fd := c.arg(0)
	e := c.p.fds.open[fd]
	cmd := c.arg(1)
	if cmd < setFlags || cmd > getMetrics {
		return -einval
	}
	var arg []byte
	var rc int32
	if cmd == setFlags {
		arg, rc = c.argument(c.word(2), c.word(3))
	}
	switch {
	case rc != 0:
		return rc
	case e == nil:
		return -ebadf
	}
	out := "{}"
	switch cmd {
	case setFlags:
		return e.setFlags(arg)
	case getFlags:
		out = `{"flags":` + e.flags() + `}`
	case getKind:
		out = `{"kind":"` + e.kind() + `"}`
	case getStatus:
		out = e.status(c.p.fds.ready(fd))
	case getMetrics:
		if e.response != nil {
			out = string(e.response.metrics)
		}
	}
	return c.reply(c.word(2), c.word(3), []byte(out))
}

func (c *call) log() int32 {
	n := c.word(2)
	if n > maxLog {
		return -einval
	}
	text, rc := c.text(c.word(1), n)
	if rc != 0 {
		return rc
	}
	if !c.p.reserveLog(len(text)) {
		return -enospc
	}
	if c.p.opts.Log != nil {
		level := "info"
		if names := []string{"trace", "debug", "info", "warn", "error"}; c.word(0) < uint32(len(names)) {
			level = names[c.word(0)]
		}
		c.p.opts.Log(level, text)
	}
	return 0
}
