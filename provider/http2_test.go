package provider

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/plain"
)

// The transport of a model without one of the caller's speaks HTTP/2 with a server that offers it, as New sets it up for https.
func TestOwnTransportUsesHTTP2(t *testing.T) {
	t.Parallel()
	proto := make(chan string, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto <- r.Proto
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	own := newTransport(nil)
	own.DialContext = plain.Dialer(own.DialContext)
	own.TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, MinVersion: tls.VersionTLS12}
	t.Cleanup(own.CloseIdleConnections)
	c, err := New(lathe.WireOpenAIChat, "m", &Options{BaseURL: srv.URL + "/v1", Transport: own, Retry: Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := <-proto; got != "HTTP/2.0" {
		t.Errorf("the model call went over %s, want HTTP/2.0", got)
	}
}
