package httptool_test

import (
	"fmt"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool/httptool"
)

func ExampleNew() {
	t, err := httptool.New(&httptool.Definition{
		Name: "get_weather", Description: "The weather of a city.", URL: "https://api.example.com/cities/{city}/weather",
		Parameters: []httptool.Parameter{{Name: "city", In: httptool.InPath}},
		Allowlist:  []string{"temp", "wind.speed"},
	}, nil, nil) // a nil client reaches api.example.com alone
	if err != nil {
		panic(err)
	}
	fmt.Println(t.Spec().Effect, string(t.Spec().Schema))
	// Output: read_only {"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}
}

// The operator of a private server names its host and its addresses.
func ExampleNew_private() {
	client, err := egress.New(&egress.Rules{Hosts: []string{"stock.internal"}, Private: []string{"10.1.0.0/16"}}, nil)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	t, err := httptool.New(&httptool.Definition{
		Name: "stock", Description: "How many of an article are in stock.", URL: "https://stock.internal/articles/{id}",
		Parameters:  []httptool.Parameter{{Name: "id", In: httptool.InPath}},
		Credentials: httptool.Credentials{Headers: map[string]secret.Secret{"Authorization": secret.New("Bearer token")}},
		Allowlist:   []string{"count"},
	}, client, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(t.Spec().Name, t.Spec().Effect)
	// Output: stock read_only
}

func ExampleImport() {
	doc := []byte(`
openapi: 3.1.0
info: {title: Weather, version: "1"}
paths:
  /cities/{city}:
    parameters: [{name: city, in: path, required: true, schema: {type: string}}]
    get: {operationId: getCity, summary: A city.}
    delete: {operationId: deleteCity}
`)
	defs, err := httptool.Import(doc, &httptool.ImportOptions{Source: "weather", Server: "https://api.example.com/v1", Operations: []string{"getCity"}, Allowlist: []string{"*"}})
	if err != nil {
		panic(err)
	}
	for _, d := range defs {
		fmt.Println(d.Name, d.Method, d.URL)
	}
	// Output: getCity GET https://api.example.com/v1/cities/{city}
}
