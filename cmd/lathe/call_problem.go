package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/tool"
)

// callProblem returns what is wrong with the arguments or the name of a call on the command line and how to correct it, because the result
// itself is written for a model. source is the name of the arguments. It returns nil if the tool was called: then the result describes the
// failure.
func callProblem(r *lathe.ToolResult, call lathe.ToolCall, source string, set *tool.Set) error {
	switch r.Code {
	case lathe.CodeUnknownTool:
		return noTool("", call.Name, set)
	case lathe.CodeInvalidJSON:
		return fmt.Errorf(`%s must be one JSON object, such as '{"name":"value"}': %s`, source, jsonPlace(call.Arguments))
	case lathe.CodeInvalidArguments:
		var content struct {
			Error struct {
				Errors []struct{ Pointer, Message string }
			}
		}
		if err := json.Unmarshal([]byte(r.Content), &content); err != nil {
			content.Error.Errors = nil // the result has another form
		}
		if len(content.Error.Errors) == 0 {
			return nil
		}
		var lines []string
		for _, e := range content.Error.Errors {
			lines = append(lines, printable(strings.TrimPrefix(e.Pointer+" "+e.Message, " ")))
		}
		return fmt.Errorf("%s: %s; `lathe tools list --json` shows the schema of %s", source, strings.Join(lines, "; "), call.Name)
	}
	return nil
}

// jsonPlace describes why a text is not a JSON object, with line and column.
func jsonPlace(text string) string {
	err := rawjson.Check([]byte(text), rawjson.Limits{})
	var syntax *rawjson.SyntaxError
	switch {
	case err == nil:
		return "it is another JSON value"
	case !errors.As(err, &syntax):
		return "it is not valid JSON"
	}
	before := text[:min(syntax.Offset, len(text))]
	return fmt.Sprintf("%s at line %d, column %d", strings.ReplaceAll(syntax.Kind, "_", " "), strings.Count(before, "\n")+1, len(before)-strings.LastIndexByte(before, '\n'))
}
