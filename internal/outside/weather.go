package outside

import (
	"net/url"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool/httptool"
)

const weatherDocument = `
openapi: 3.1.0
info: {title: Weather, version: "1"}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
security: [{key: []}]
paths:
  /cities/{city}/weather:
    get:
      operationId: get_weather
      summary: Returns the weather of a city.
      parameters: [{name: city, in: path, required: true, schema: {type: string}}]
`

// Weather returns the tool of an OpenAPI document whose server is at address. Its requests can reach no other host. address may be on this
// machine: loopback addresses must be allowed explicitly.
func Weather(address string, key secret.Secret) (lathe.Tool, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, err
	}
	client, err := egress.New(&egress.Rules{Hosts: []string{u.Hostname()}, Schemes: []string{u.Scheme},
		Ports: []int{port}, Private: []string{"127.0.0.1"}}, nil)
	if err != nil {
		return nil, err
	}
	definitions, err := httptool.Import([]byte(weatherDocument), &httptool.ImportOptions{Source: "weather", Server: address,
		Operations: []string{"get_weather"}, Allowlist: []string{"temperature"}, Security: map[string]secret.Secret{"key": key}})
	if err != nil {
		return nil, err
	}
	return httptool.New(definitions[0], client, nil)
}
