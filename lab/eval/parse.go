package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// maxSuiteBytes is the maximum size of a suite file.
const maxSuiteBytes = 1 << 20

// Parse parses a suite file. name is the name of the suite, and the name of the file in errors. The error names the line that is not valid,
// or the invalid setting.
func Parse(name string, b []byte) (*Suite, error) {
	p := &parser{decoder: decoder{name}, suite: &Suite{Name: name}}
	if len(b) > maxSuiteBytes {
		return nil, &syntaxError{File: name, Message: fmt.Sprintf("larger than %d bytes", maxSuiteBytes)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &syntaxError{File: name, Message: "the file is empty"}
		}
		return nil, p.yamlError(err)
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return nil, p.errorf(&second, "a second document: the file has one")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.yamlError(err)
	}
	if err := p.root(doc.Content[0]); err != nil {
		return nil, err
	}
	return p.suite, nil
}

// A parser reads a suite file into a Suite: root sets its fields, and scenario adds one scenario.
type parser struct {
	decoder
	suite *Suite
	// Values with which every scenario begins; root sets them.
	mocks  []mockTool
	policy *guard
	system string
	db     json.RawMessage
}
