package lathetest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

var leakChecks atomic.Int64

// leaked calls fn. It returns an error with the stack of a goroutine that fn started, directly or indirectly, and that has not ended after
// the time patience. It identifies these goroutines by profiler labels, which goroutines inherit, so that goroutines of other tests do not
// count. Idle connections of net/http do not count either.
func leaked(fn func()) error {
	id := strconv.FormatInt(leakChecks.Add(1), 10)
	pprof.Do(context.Background(), pprof.Labels("lathetest", id), func(context.Context) { fn() })
	label := fmt.Sprintf("%q:%q", "lathetest", id)
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		stack := labelled(label)
		if stack == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a goroutine still runs after %v:\n%s", patience, stack)
		}
	}
}

// labelled returns the stack of a goroutine with the profiler label, or "" if none exists.
func labelled(label string) string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return ""
	}
	for group := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(group, label) && !strings.Contains(group, "net/http.(*persistConn)") && !strings.Contains(group, "net/http.(*http2") {
			return group
		}
	}
	return ""
}
