package egress

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

type vector struct {
	URL, Why string
}

type vectors struct {
	Deny, Allow []vector
	Dynamic     []struct {
		Name, HTTP, Expect string
		Resolver           [][]string
	}
}

func readVectors(t *testing.T) *vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/ssrf.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Deny) == 0 || len(v.Allow) == 0 || len(v.Dynamic) == 0 {
		t.Fatal("the vectors are empty")
	}
	return &v
}

// open are rules that name nothing but what is public.
func open() *Rules { return &Rules{Hosts: []string{"*"}, Schemes: []string{"https", "http"}} }

func get(t *testing.T, c *Client, u string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u, nil)
	if err != nil {
		return refuse(CodeURL) // net/http has refused it before us
	}
	resp, err := c.Do(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func TestT9_Vectors(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	public := map[string][][]string{"example.com": {{"93.184.216.34"}}, "foo.localhost": {{"127.0.0.1"}}, "localhost": {{"127.0.0.1"}}}
	for _, d := range v.Deny {
		c, dialled := recorded(t, open(), &script{answers: public})
		err := get(t, c, d.URL)
		if e := Plain(err); err == nil || !e.Refused {
			t.Errorf("%s (%s): got %v, want a refusal", d.URL, d.Why, err)
		}
		if a := dialled(); a != nil {
			t.Errorf("%s (%s): dialled %v", d.URL, d.Why, a)
		}
	}
	for _, a := range v.Allow {
		c, dialled := recorded(t, open(), &script{answers: public})
		err := get(t, c, a.URL)
		if CodeOf(err) != CodeConnect || len(dialled()) != 1 {
			t.Errorf("%s (%s): got %v after dialling %v, want it to get as far as the connection", a.URL, a.Why, err, dialled())
		}
	}
	for _, d := range v.Dynamic {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			if d.HTTP != "" {
				checkRedirectVector(t, d.HTTP)
				return
			}
			checkResolverVector(t, d.Resolver)
		})
	}
}

// checkResolverVector makes one request more than there are answers, and wants each to go to a
// public address of the answer that it got, or nowhere.
func checkResolverVector(t *testing.T, answers [][]string) {
	t.Helper()
	c, dialled := recorded(t, open(), &script{answers: map[string][][]string{"name.example": slices.Clone(answers)}})
	want := []string{}
	for i := range len(answers) + 1 {
		answer := answers[min(i, len(answers)-1)]
		before := len(dialled())
		err := get(t, c, "https://name.example/")
		if !slices.ContainsFunc(answer, func(a string) bool { return classOf(netip.MustParseAddr(a).Unmap()) != public }) {
			want = append(want, answer[0]+":443")
			continue
		}
		if CodeOf(err) != CodeAddress || len(dialled()) != before {
			t.Errorf("request %d with answer %v: got %v, dialled %v", i+1, answer, err, dialled())
		}
	}
	got := dialled()
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("dialled %v, want %s among them", got, w)
		}
	}
	for _, a := range got {
		if classOf(netip.MustParseAddrPort(a).Addr()) != public {
			t.Errorf("dialled %s", a)
		}
	}
}

// checkRedirectVector serves the redirect that the vector writes as "302 Location: URL" or "302 to itself".
func checkRedirectVector(t *testing.T, http302 string) {
	t.Helper()
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, to, found := strings.Cut(http302, "Location: ")
		if !found {
			to = r.URL.String()
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer srv.Close()
	u, _ := url.Parse(srv.URL)
	port, _ := portOf(u)
	r := open()
	r.Ports, r.Private = []int{port, 80, 443}, []string{u.Hostname()}
	c, err := New(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = get(t, c, srv.URL)
	switch to := strings.Contains(http302, "Location: "); {
	case to && (CodeOf(err) != CodeAddress || asked != 1):
		t.Errorf("got %v after %d requests, want the second hop refused", err, asked)
	case !to && (CodeOf(err) != CodeRedirectLimit || asked != 6):
		t.Errorf("got %v after %d requests, want %s after 6", err, asked, CodeRedirectLimit)
	}
}

// The name server answers the first query with a public address and the second with loopback: a client
// that resolves the name twice connects to loopback.
func TestT9_RebindingBetweenCheckAndDial(t *testing.T) {
	t.Parallel()
	resolver := &script{answers: map[string][][]string{"rebind.example": {{"93.184.216.34"}, {"127.0.0.1"}}}}
	c, dialled := recorded(t, open(), resolver)
	if err := get(t, c, "http://rebind.example/"); CodeOf(err) != CodeConnect {
		t.Errorf("first request: got %v, want %s", err, CodeConnect)
	}
	if resolver.asked != 1 {
		t.Errorf("the name was looked up %d times for one connection", resolver.asked)
	}
	if err := get(t, c, "http://rebind.example/"); CodeOf(err) != CodeAddress {
		t.Errorf("second request: got %v, want %s", err, CodeAddress)
	}
	if got := dialled(); !slices.Equal(got, []string{"93.184.216.34:80"}) {
		t.Errorf("dialled %v", got)
	}
}

// The network layer's own check stands even where everything before it is gone.
func TestT9_ControlChecksTheAddressItself(t *testing.T) {
	t.Parallel()
	_, d, err := build(open(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]Code{
		"93.184.216.34:443": "", "93.184.216.34:22": CodePort, "127.0.0.1:80": CodeAddress, "[::1]:80": CodeAddress,
		"[::ffff:127.0.0.1]:80": CodeAddress, "[::ffff:93.184.216.34]:80": "", "169.254.169.254:80": CodeAddress,
		"[2606:2800:220:1::1]:443": "", "[fe80::1%eth0]:80": CodeAddress, "nonsense": CodeAddress,
	} {
		if got := CodeOf(d.control("any.example", address)); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

func TestT9_Addresses(t *testing.T) {
	t.Parallel()
	r, err := (&Rules{Hosts: []string{"*"}}).compile()
	if err != nil {
		t.Fatal(err)
	}
	for a, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700:4700::1111": true, "172.15.255.255": true, "172.32.0.0": true, "100.128.0.1": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.255.255.255": false, "100.64.0.1": false, "100.127.255.255": false, "100.100.100.200": false,
		"127.255.255.254": false, "169.254.169.254": false, "168.63.129.16": false, "172.16.0.0": false, "172.31.255.255": false,
		"192.0.0.1": false, "192.0.2.255": false, "192.88.99.1": false, "192.168.255.255": false, "198.19.255.255": false,
		"198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::7f00:1": false, "::ffff:127.0.0.1": false, "::ffff:8.8.8.8": true, "fe80::1": false, "fec0::1": false,
		"fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "64:ff9b::8.8.8.8": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false,
		"2002:7f00:1::": false, "2002:808:808::": false, "2001::1": false, "2001:db8::1": false, "3fff::1": false, "100::1": false, "4000::1": false,
	} {
		if got := r.reachable(netip.MustParseAddr(a), "api.example.com"); got != want {
			t.Errorf("%s: got %t, want %t", a, got, want)
		}
	}
}

func TestT9_PrivateNamesWhatItOpens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		private, address string
		named, want      bool
	}{
		{"10.1.0.0/16", "10.1.2.3", false, true},
		{"10.1.0.0/16", "10.2.2.3", false, false},
		{"127.0.0.1", "127.0.0.1", false, true},
		{"127.0.0.1", "127.0.0.2", false, false},
		{"files.internal", "10.9.9.9", true, true},
		{"files.internal", "127.0.0.1", true, true},
		{"files.internal", "169.254.169.254", true, false},
		{"files.internal", "0.0.0.0", true, false},
		{"0.0.0.0/0", "10.0.0.1", false, true},
		{"0.0.0.0/0", "169.254.169.254", false, false},
		{"0.0.0.0/0", "100.100.100.200", false, false},
		{"169.254.0.0/16", "169.254.169.254", false, true},
		{"169.254.169.254", "169.254.169.254", false, true},
		{"0.0.0.0", "0.0.0.0", false, false},
		{"224.0.0.0/4", "224.0.0.1", false, false},
		{"64:ff9b::/96", "64:ff9b::8.8.8.8", false, true},
		{"64:ff9b::/96", "64:ff9b::127.0.0.1", false, false},
		{"64:ff9b::/96", "64:ff9b::a9fe:a9fe", false, false},
		{"::/0", "fe80::1", false, false},
		{"::/0", "fd00:ec2::254", false, false},
		{"fc00::/7", "fc00::1", false, true},
		{"fd00:ec2::254", "fd00:ec2::254", false, true},
	} {
		r, err := (&Rules{Private: []string{c.private}}).compile()
		if err != nil {
			t.Fatal(err)
		}
		host := "api.example.com"
		if c.named {
			host = c.private
		}
		if got := r.reachable(netip.MustParseAddr(c.address), host); got != c.want {
			t.Errorf("private %s, address %s: got %t, want %t", c.private, c.address, got, c.want)
		}
	}
}

func TestT9_EnvironmentProxiesAreIgnored(t *testing.T) {
	asked := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	c, dialled := recorded(t, open(), &script{answers: map[string][][]string{"example.com": {{"93.184.216.34"}}}})
	if err := get(t, c, "http://example.com/"); CodeOf(err) != CodeConnect {
		t.Errorf("got %v, want %s", err, CodeConnect)
	}
	if got := dialled(); asked || !slices.Equal(got, []string{"93.184.216.34:80"}) {
		t.Errorf("dialled %v, proxy asked %t", got, asked)
	}
}
