package event

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// The limits of [ReadLog].
const (
	maxLogLine   = 64 << 20 // bytes of one event
	maxLogEvents = 100_000
)

// ReadLog reads the log of one run: JSON lines, as `lathe runs export` and `lathe run --json` print them. It skips empty lines and the
// types for which [IsDelta] is true. It returns at least one event. The first event is a [RunStarted], and no other is. The run need not
// have ended.
//
// The error contains the number of the line. ReadLog returns an error if an event is missing, belongs to another run or follows the end of
// the run, or if its numbers are impossible, such as negative token counts. It also returns an error if the event, written again, would
// differ from the line: such an event was written without its content, or by another version of this program. A line may have at most 64
// MiB, and a log at most 100,000 events.
func ReadLog(in io.Reader) ([]Event, error) {
	var events []Event
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxLogLine)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		var err error
		if events, err = appendLogLine(events, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("a line is longer than %d bytes", maxLogLine)
	case err != nil:
		return nil, err
	case len(events) == 0:
		return nil, errors.New("it holds no event")
	}
	return events, nil
}

func appendLogLine(events []Event, line []byte) ([]Event, error) {
	var e Event
	if err := e.UnmarshalJSON(line); err != nil {
		return nil, err
	}
	if IsDelta(e.Data) {
		return events, nil
	}
	again, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	_, starts := e.Data.(*RunStarted)
	n := len(events)
	ended := false
	if n > 0 {
		_, ended = events[n-1].Data.(*RunFinished)
	}
	switch {
	case !bytes.Equal(again, line):
		return nil, fmt.Errorf("event %d would not be kept as it is: it was written without texts, or by another version of lathe", e.ID)
	case e.ID != int64(n)+1:
		return nil, fmt.Errorf("event %d where %d is next", e.ID, n+1)
	case starts != (n == 0):
		return nil, errors.New("a record begins with RunStarted, and holds it once")
	case n > 0 && e.RunID != events[0].RunID:
		return nil, fmt.Errorf("event %d is of another run", e.ID)
	case ended:
		return nil, fmt.Errorf("event %d follows the end of the run", e.ID)
	case n == maxLogEvents:
		return nil, fmt.Errorf("more than %d events", maxLogEvents)
	}
	if err := checkFigures(e.Data); err != nil {
		return nil, fmt.Errorf("event %d cannot be: %w", e.ID, err)
	}
	return append(events, e), nil
}
