//go:build wasip1

// This guest registers its function sum as a tool, asks a model to use it, and prints what the model
// answers and what that cost in tokens.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"unsafe"
)

// arena is memory for the arguments and outputs of calls.
var arena [64 << 10]byte

// sum is called by the host when the model asks for it.
//
//go:wasmexport sum
func sum(args unsafe.Pointer, argsLen uint32, out, outLen unsafe.Pointer) int32 {
	var in struct{ A, B int }
	if json.Unmarshal(unsafe.Slice((*byte)(args), argsLen), &in) != nil {
		return -22 // EINVAL
	}
	answer := fmt.Appendf(nil, `{"sum":%d}`, in.A+in.B)
	room := (*uint32)(outLen)
	if uint32(len(answer)) > *room {
		*room = uint32(len(answer))
		return noSpace
	}
	copy(unsafe.Slice((*byte)(out), *room), answer)
	*room = uint32(len(answer))
	return 0
}

const definition = `{"type":"function","function":{"name":"sum","description":"Adds two whole numbers.",
	"parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}}`

func main() {
	fd := must(cchatCreate())
	must(writeMessage(fd, "user", "Please call sum for a=7 and b=35."))
	must(writeFunction(fd, definition))
	must(setParameter(fd, fmt.Sprintf(`{"key":"tool_arena_ptr","value":%d}`, uintptr(unsafe.Pointer(&arena)))))
	must(setParameter(fd, fmt.Sprintf(`{"key":"tool_arena_len","value":%d}`, len(arena))))
	must(setParameter(fd, `{"key":"max_iterations","value":4}`))

	response := must(cchatSend(fd, enableMetrics|autoToolCall))
	body, rc := read(func(out, outLen unsafe.Pointer) int32 { return cchatRecv(response, out, outLen) })
	must(rc)
	metrics, rc := read(func(out, outLen unsafe.Pointer) int32 { return cchatCtl(response, getMetrics, out, outLen) })
	must(rc)

	var answer struct {
		Choices []struct{ Message struct{ Content string } }
		Error   *struct{ Code, Message string }
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error != nil || len(answer.Choices) == 0 {
		fmt.Fprintf(os.Stderr, "no answer: %s\n", body)
		os.Exit(1)
	}
	fmt.Println(answer.Choices[0].Message.Content)
	fmt.Printf("%s\n", metrics)
	must(cchatClose(response))
	must(cchatClose(fd))
}

// must returns what a call returned, or ends the program with the number of the error.
func must(rc int32) int32 {
	if rc < 0 {
		fmt.Fprintf(os.Stderr, "error %d\n", -rc)
		os.Exit(int(-rc))
	}
	return rc
}
