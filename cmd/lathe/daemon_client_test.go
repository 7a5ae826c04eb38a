package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Where nothing names a store or a gateway and none answers at the usual address, the error names the flags.
func TestCommandsNameTheFlagsWhereNoDaemonAnswers(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close() // nothing listens there now
	var f serverFlags
	c, err := f.defaultClient()
	if err != nil || c.base != defaultServer || c.flag != "" {
		t.Fatalf("%+v, %v", c, err)
	}
	c.base = "http://" + addr
	err = c.call(t.Context(), "GET", "/api/runs", nil, nil)
	for _, want := range []string{"which runs?", "--server URL", "LATHE_SERVER", "--store sqlite:PATH", "LATHE_STORE", "connection refused"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}

// A key is shown to the gateway that was named, and to no address that it sends the command to.
func TestKeyOfADaemonFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was asked for with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	c, err := (&serverFlags{}).client(first.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.key = "0123456789abcdef"
	if err := c.call(t.Context(), "GET", "/api/runs", nil, nil); err == nil || !strings.Contains(err.Error(), "HTTP 307") {
		t.Error(err)
	}
}

// The first letter of a detail is written in lower case, whatever its number of bytes.
func TestDaemonProblemBeginsInLowerCase(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{"The run is unknown.": "the run is unknown", "Über": "über", "": "the gateway answered HTTP 404"} {
		if got := (&daemonProblem{Status: 404, Detail: detail}).Error(); got != want {
			t.Errorf("%q: %q, want %q", detail, got, want)
		}
	}
}
