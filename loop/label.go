package loop

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Limits of the labels of a run.
const (
	MaxLabels          = 32
	MaxLabelNameBytes  = 64
	MaxLabelValueBytes = 256
)

// Labels that say which graph a run is a part of. A run with LabelGraphRunID must have the other two.
const (
	LabelGraphRunID   = "graph_run_id"
	LabelGraphName    = "graph_name"
	LabelGraphVersion = "graph_version"
)

// CheckLabels returns an error if the labels of a run exceed a limit above, if a label has no name, or if LabelGraphRunID is
// set without LabelGraphName and LabelGraphVersion.
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
		case len(name) > MaxLabelNameBytes:
			return fmt.Errorf("the name of a label has %d bytes, where %d are allowed", len(name), MaxLabelNameBytes)
		case len(labels[name]) > MaxLabelValueBytes:
			return fmt.Errorf("the label %q has %d bytes, where %d are allowed", name, len(labels[name]), MaxLabelValueBytes)
		}
	}
	if labels[LabelGraphRunID] == "" {
		return nil
	}
	for _, name := range []string{LabelGraphName, LabelGraphVersion} {
		if labels[name] == "" {
			return fmt.Errorf("the label %s needs the label %s beside it", LabelGraphRunID, name)
		}
	}
	return nil
}
