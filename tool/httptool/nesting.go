package httptool

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

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
