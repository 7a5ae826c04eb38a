package egress_test

import (
	"fmt"
	"net/http"

	"github.com/lathe-run/lathe/egress"
)

func Example() {
	client, err := egress.New(&egress.Rules{Hosts: []string{"api.example.com"}}, nil)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for _, u := range []string{"http://api.example.com/", "https://other.example.com/", "https://api.example.com:8443/"} {
		req, err := http.NewRequest(http.MethodGet, u, nil)
		if err != nil {
			panic(err)
		}
		_, err = client.Do(req)
		fmt.Println(err)
	}
	// Output:
	// egress: scheme_refused: the scheme is not allowed
	// egress: host_refused: the host is not allowed
	// egress: port_refused: the port is not allowed
}
