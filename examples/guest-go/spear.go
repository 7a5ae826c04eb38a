//go:build wasip1

package main

import "unsafe"

// The calls of the module spear that this program makes; docs/internals/guest-abi.md has all of them.

//go:wasmimport spear cchat_create
func cchatCreate() int32

//go:wasmimport spear cchat_write_msg
func cchatWriteMsg(fd int32, role unsafe.Pointer, roleLen uint32, content unsafe.Pointer, contentLen uint32) int32

//go:wasmimport spear cchat_write_fn
func cchatWriteFn(fd, offset int32, definition unsafe.Pointer, definitionLen uint32) int32

//go:wasmimport spear cchat_ctl
func cchatCtl(fd, cmd int32, arg unsafe.Pointer, argLen unsafe.Pointer) int32

//go:wasmimport spear cchat_send
func cchatSend(fd, flags int32) int32

//go:wasmimport spear cchat_recv
func cchatRecv(fd int32, out unsafe.Pointer, outLen unsafe.Pointer) int32

//go:wasmimport spear cchat_close
func cchatClose(fd int32) int32

const (
	setParam   = 1
	getMetrics = 2

	enableMetrics = 1
	autoToolCall  = 2

	// byName registers the function that is exported under the tool's name: Go gives functions no
	// place in a table.
	byName = -1

	noSpace = -28
)

func pointer(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

func writeMessage(fd int32, role, content string) int32 {
	r, rn := pointer(role)
	c, cn := pointer(content)
	return cchatWriteMsg(fd, r, rn, c, cn)
}

func writeFunction(fd int32, definition string) int32 {
	d, n := pointer(definition)
	return cchatWriteFn(fd, byName, d, n)
}

func setParameter(fd int32, text string) int32 {
	p, n := pointer(text)
	return cchatCtl(fd, setParam, p, unsafe.Pointer(&n))
}

// read calls get with a buffer that grows until what it has to say fits.
func read(get func(out, outLen unsafe.Pointer) int32) ([]byte, int32) {
	buf := make([]byte, 4096)
	for {
		n := uint32(len(buf))
		rc := get(unsafe.Pointer(&buf[0]), unsafe.Pointer(&n))
		if rc == noSpace {
			buf = make([]byte, n)
			continue
		}
		return buf[:max(rc, 0)], rc
	}
}
