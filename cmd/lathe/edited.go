package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
)

// maxComplaints is the largest number of violations in the error about arguments.
const maxComplaints = 5

// checkEdited returns an error if arguments that a user has edited do not fit the tool. It is called before the approval is used, so that a
// mistake does not use it up.
func checkEdited(spec *lathe.ToolSpec, args []byte) error {
	if err := rawjson.Check(args, rawjson.Limits{}); err != nil {
		return fmt.Errorf("this is not JSON: %w", err)
	}
	if args[rawjson.SkipSpace(args, 0)] != '{' {
		return errors.New("the arguments are a JSON object")
	}
	if spec == nil || len(spec.Schema) == 0 {
		return nil
	}
	s, err := schema.Compile(spec.Schema)
	if err != nil {
		return nil //nolint:nilerr // the runner says what it makes of them
	}
	found := s.ValidateArguments(args)
	if len(found) == 0 {
		return nil
	}
	var texts []string
	for _, v := range found[:min(len(found), maxComplaints)] {
		texts = append(texts, visible(cmp.Or(v.Pointer, "the arguments")+": "+v.Message))
	}
	return errors.New(strings.Join(texts, "; "))
}
