package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/store"
)

// fill has every write of a process to a file fail, as on a disk that is full; with free they succeed again.
func fill(t *testing.T, pid int, free bool) {
	t.Helper()
	limit := struct{ now, most uint64 }{1, ^uint64(0)}
	if free {
		limit.now = ^uint64(0)
	}
	const fileSize = 1
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), fileSize, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); err != 0 {
		t.Skipf("the limit on files of another process cannot be set here: %v", err)
	}
}

// F16: while the disk is full, new runs are refused and runs in progress stay as their logs have them. When the disk has
// free space again, new runs are accepted, and a process that starts resumes the others. Nothing is lost.
func TestF16_DiskFull(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	file := "sqlite:" + filepath.Join(x.dir, "runs.db")
	p := x.serves(file)
	begin := func(tag string) (int, string) {
		return x.try("POST", "/api/runs", fmt.Sprintf(`{"model":"main","prompt":%q}`, tag), "Idempotency-Key", tag)
	}
	status, answer := begin("before")
	var made struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(answer), &made); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	x.mu.Lock()
	x.runs = append(x.runs, &tagged{tag: "before", id: made.ID, tail: enginetest.Tail{RunID: made.ID}})
	x.mu.Unlock()
	for range 2 { // the model is asked, and the first tool called: it waits for its answer
		<-x.stirs
	}
	fill(t, p.cmd.Process.Pid, false)
	close(x.settling) // who waits is answered
	for n := range 3 {
		if status, answer := begin(fmt.Sprint("full", n)); status != http.StatusServiceUnavailable {
			t.Errorf("with a full disk: %d %s", status, answer)
		}
	}
	if status, answer := x.try("GET", "/api/runs/"+made.ID, ""); status != http.StatusOK || !strings.Contains(answer, made.ID) {
		t.Errorf("what was kept cannot be read: %d %s", status, answer)
	}
	fill(t, p.cmd.Process.Pid, true)
	for until := time.Now().Add(time.Minute); ; {
		status, answer := begin("after")
		if status == http.StatusCreated {
			_ = json.Unmarshal([]byte(answer), &made) // its status says that it is one
			x.runs = append(x.runs, &tagged{tag: "after", id: made.ID, tail: enginetest.Tail{RunID: made.ID}})
			break
		}
		if time.Now().After(until) {
			t.Fatalf("with room again: %d %s", status, answer)
		}
	}
	x.kills(p)
	last := x.serves(file)
	for _, r := range x.runs {
		for !x.follow(r) && x.ctx.Err() == nil {
			x.pause(nil)
		}
	}
	x.kills(last)
	h := x.history(kept(t, x.dir), 1)
	for _, v := range h.Check() {
		t.Error(v)
	}
	rows, _, err := kept(t, x.dir).Runs(t.Context(), &store.RunFilter{})
	if err != nil || len(rows) != 2 || rows[0].Reason != lathe.ReasonAnswered || rows[1].Reason != lathe.ReasonAnswered {
		t.Errorf("%+v, %v", rows, err)
	}
}
