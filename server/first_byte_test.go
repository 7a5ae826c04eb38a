package server_test

import (
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// The time to the first byte of an answer is counted by route, and is less than the time of the whole request.
func TestFirstByteIsCountedByRoute(t *testing.T) {
	t.Parallel()
	var seconds atomic.Int64 // the clock moves by one second each time it is read
	f := serve(t, &setting{now: func() time.Time { return time.Unix(seconds.Add(1), 0) }})
	if resp, body := f.do("GET", "/v1/models", ""); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	f.idle()
	w := httptest.NewRecorder()
	f.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	value := func(name string) float64 {
		m := regexp.MustCompile(`(?m)^` + name + `\{route="GET /v1/models"\} (.*)$`).FindStringSubmatch(w.Body.String())
		if m == nil {
			t.Fatalf("no %s in\n%s", name, w.Body)
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first, whole := value("lathe_http_first_byte_seconds_sum"), value("lathe_http_request_duration_seconds_sum")
	if n := value("lathe_http_first_byte_seconds_count"); n != 1 || first < 1 || whole <= first {
		t.Errorf("%v requests: %v s to the first byte of %v s", n, first, whole)
	}
}
