package builtin

import (
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

type timeArgs struct {
	Zone string `json:"zone,omitempty" jsonschema:"IANA time zone such as Europe/Berlin; UTC when left out"`
}

type timeResult struct {
	CurrentTime string `json:"currentTime"`
}

// currentTime returns the tool get_current_time: the time of now in RFC 3339, in the requested zone.
func currentTime(now func() time.Time) lathe.Tool {
	return tool.Func("get_current_time", "Get the current date and time, in UTC or in a given time zone.",
		func(_ context.Context, in timeArgs) (timeResult, error) {
			loc, err := zone(in.Zone)
			if err != nil {
				return timeResult{}, tool.Fail(lathe.CodeInvalidArguments, "there is no time zone of that name: give an IANA name such as Europe/Berlin")
			}
			return timeResult{now().In(loc).Format(time.RFC3339)}, nil
		}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"currentTime"}, Origin: origin})
}

func zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if name == "Local" { // not allowed: it would disclose the zone of the server
		return nil, errors.New("not a zone of the database")
	}
	return time.LoadLocation(name)
}
