package llamacpp

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/doctor"
)

// The doctor finds nothing wrong with a healthy server, however often it looks.
func TestDoctorFindsAHealthyServerHealthy(t *testing.T) {
	s := start(t, "qwen3")
	each(times(2, 10), func(i string) {
		rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: s.url, Model: "qwen3"}, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if rep.Broken() {
			t.Errorf("examination %s: %+v", i, rep.Findings)
		}
		if f, ok := rep.Find("connection-lost-once"); ok {
			t.Errorf("examination %s: %+v", i, f)
		}
	})
}

// times returns the numbers of as many repetitions, or of more with -full.
func times(n, inFull int) (list []string) {
	if *full {
		n = inFull
	}
	for i := range n {
		list = append(list, strconv.Itoa(i+1))
	}
	return list
}

// Connections that the server closes with the last byte of a stream are no failed attempts, with one attempt allowed.
func TestClosedConnectionsAreNoFailures(t *testing.T) {
	s := start(t, "qwen3")
	for _, i := range times(10, 50) {
		if out := (setup{url: s.url, model: "qwen3", dialect: "native"}).run(t, "@@step go", nil); out.Reason != lathe.ReasonAnswered || len(out.failed) > 0 {
			t.Errorf("run %s: %s", i, out.words())
		}
	}
}

// A server that is killed in the middle of an answer ends the run with upstream_error, and nothing is executed.
func TestKilledServer(t *testing.T) {
	for _, prompt := range []string{"@@loop go", "@@longcall go"} {
		s := start(t, "qwen3")
		out := (setup{url: s.url, model: "qwen3", dialect: "native"}).run(t, prompt, s.kill)
		if out.Reason != lathe.ReasonUpstreamError || len(out.executed) > 0 {
			t.Errorf("%s: %s", prompt, out.words())
		}
	}
}

// A run that meets a server which loads its model waits for it.
func TestStartingServer(t *testing.T) {
	s := begin(t, "qwen3")
	s.await(t, func() bool {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if out := (setup{url: s.url, model: "qwen3", dialect: "native"}).run(t, "go", nil); out.Reason != lathe.ReasonAnswered {
		t.Error(out.words())
	}
}

// An answer that is cut off, wherever and however, executes nothing.
func TestCutConnection(t *testing.T) {
	s := start(t, "qwen3")
	for _, after := range []int{0, 1, 40, 200, 400, 700, 1000, 1500, 2000} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes, reset %v", after, reset), func(t *testing.T) {
				c := cut(t, s, after, reset)
				out := (setup{url: c.url, model: "qwen3", dialect: "native"}).run(t, "go", nil)
				if out.Reason != lathe.ReasonUpstreamError || len(out.executed) > 0 {
					t.Error(out.words())
				}
			})
		}
	}
}

// A conversation that exceeds the context is reported as such.
func TestContextOverflow(t *testing.T) {
	s := start(t, "qwen3", "-c", "1024")
	out := (setup{url: s.url, model: "qwen3", dialect: "native"}).run(t, "@@plain "+string(slices.Repeat([]byte("word "), 4000)), nil)
	var up *lathe.UpstreamError
	if !asUpstream(out.Err, &up) || up.ProviderCode != lathe.CodeContextLength || len(out.failed) != 1 {
		t.Errorf("%s: %+v", out.words(), up)
	}
}
