package httptool

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxNesting bounds the depth of a document, maxMembers the members of one of its objects. Reading a
// document takes time that grows with the square of its depth at least.
const (
	maxNesting = 200
	maxMembers = 100_000
)

// checkNesting refuses a document that is nested too deeply, aliases followed, before anything
// builds values of it. A JSON document must be strict: two readers of one that has a key twice would
// not see the same operation.
func checkNesting(b []byte) error {
	if i := rawjson.SkipSpace(b, 0); i < len(b) && b[i] == '{' {
		if _, err := rawjson.Scan(b, i); err == nil {
			return rawjson.Check(b, rawjson.Limits{MaxDepth: maxNesting, MaxKeys: maxMembers})
		}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return err
	}
	_, err := depthOf(&root, map[*yaml.Node]int{})
	return err
}

var errEndless = errors.New("an alias of the document holds itself")

// depthOf returns the depth of a node. known holds those of the nodes that were seen, and -1 for
// those that are being looked at.
func depthOf(n *yaml.Node, known map[*yaml.Node]int) (int, error) {
	if n.Kind == yaml.ScalarNode {
		return 0, nil
	}
	if d, ok := known[n]; ok {
		if d < 0 {
			return 0, errEndless
		}
		return d, nil
	}
	known[n] = -1
	below := n.Content
	if n.Kind == yaml.AliasNode {
		below = []*yaml.Node{n.Alias}
	}
	depth := 0
	for _, c := range below {
		d, err := depthOf(c, known)
		if err != nil {
			return 0, err
		}
		depth = max(depth, d+1)
	}
	if depth > maxNesting {
		return 0, fmt.Errorf("it is nested deeper than %d", maxNesting)
	}
	known[n] = depth
	return depth, nil
}
