package loop

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// MaxLabels is the maximum number of labels of a run.
const MaxLabels = 32

const (
	maxLabelNameBytes  = 64
	maxLabelValueBytes = 256
)

// Labels of a run that is part of a graph. A run with labelGraphRunID must have the other two.
const (
	labelGraphRunID   = "graph_run_id"
	labelGraphName    = "graph_name"
	labelGraphVersion = "graph_version"
)

// CheckLabels returns an error if there are more than [MaxLabels] labels, if the name of a label is empty or above 64 bytes, or its value
// above 256 bytes, or if the label graph_run_id is set without graph_name and graph_version.
func CheckLabels(labels map[string]string) error {
	if len(labels) == 0 {
		return nil
	}
	if len(labels) > MaxLabels {
		return fmt.Errorf("%d labels, where %d are allowed", len(labels), MaxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case name == "":
			return errors.New("a label has no name")
		case len(name) > maxLabelNameBytes:
			return fmt.Errorf("the name of a label has %d bytes, where %d are allowed", len(name), maxLabelNameBytes)
		case len(labels[name]) > maxLabelValueBytes:
			return fmt.Errorf("the label %q has %d bytes, where %d are allowed", name, len(labels[name]), maxLabelValueBytes)
		}
	}
	if labels[labelGraphRunID] == "" {
		return nil
	}
	for _, name := range []string{labelGraphName, labelGraphVersion} {
		if labels[name] == "" {
			return fmt.Errorf("the label %s needs the label %s beside it", labelGraphRunID, name)
		}
	}
	return nil
}
