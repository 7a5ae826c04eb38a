package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// list requests the list of tools page by page, until the deadline until. It returns the definitions that have a name, and the errors of
// those that cannot be offered, by name (or by position, if a definition has no readable name). A definition that is listed twice with equal
// parts counts as one tool. list sets x.fresh to the shortest hint of the pages.
func (x *session) list(ctx context.Context, s *Server, until time.Time) (defs []*definition, refused map[string]error, err error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	refused = map[string]error{}
	cursor, fresh := "", time.Duration(0)
	for page := 0; ; page++ {
		if page == maxPages {
			return nil, nil, fmt.Errorf("the list of tools has more than %d pages; its nextCursor must be missing on the last page, which the author of the server can mend", maxPages)
		}
		result, decoded, err := x.listPage(ctx, s, cursor)
		if err != nil {
			return nil, nil, err
		}
		fresh = shorter(fresh, freshFor(result))
		listed, errs := readPage(result, decoded)
		maps.Copy(refused, errs)
		before := len(defs)
		for _, d := range listed {
			if !slices.ContainsFunc(defs, func(other *definition) bool { return other.digest == d.digest }) {
				defs = append(defs, d)
			}
		}
		// Definitions without a readable name are only in refused. The limit of the sum bounds them.
		if len(defs) > s.MaxTools || len(defs)+len(refused) > 2*s.MaxTools {
			return nil, nil, fmt.Errorf("it has more tools than tools.mcp.%s.max_tools (%d): raise it if the server is meant to have so many", s.Name, s.MaxTools)
		}
		next := x.nextCursor(result)
		// If the empty cursor leads to itself and the page has no new tool, another request would have the same result.
		repeats := next == emptyCursor && cursor == emptyCursor && len(defs) == before
		if next == "" || repeats {
			x.fresh = fresh
			return defs, refused, nil
		}
		cursor = next
	}
}

// listPage requests one page of the list; cursor "" is the first. It returns the result as received, and as the protocol library decoded it:
// nil if the decoder failed. It returns errCached if the library sent no request.
func (x *session) listPage(ctx context.Context, s *Server, cursor string) (result []byte, decoded *mcp.ListToolsResult, err error) {
	r := &request{}
	decoded, err = x.mcp.ListTools(x.tap.watch(ctx, r), &mcp.ListToolsParams{Cursor: cursor})
	x.tap.forget(r)
	got := x.tap.state(r)
	switch {
	case got.refusal.needsSession():
		return nil, nil, errSessionLost
	case got.err != nil:
		err = got.err
	case got.result == nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = x.late(s)
	case got.result == nil && err == nil:
		return nil, nil, errCached
	case got.result == nil: // err is the reason
	case got.result[0] != '{':
		err = errors.New("the result is not an object")
	default: // an error of the library is one of its decoder: decoded is nil then
		return got.result, decoded, nil
	}
	return nil, nil, fmt.Errorf("listing tools: %w", err)
}

// readPage reads the definitions of a page, and the errors of those that cannot be offered. Of a page that it can decode (decoded is not
// nil), the protocol library omits exactly the tools in whose schema it finds an invalid headerMark. They are refused with errMark.
func readPage(result []byte, decoded *mcp.ListToolsResult) (defs []*definition, refused map[string]error) {
	defs, refused = readList(result)
	if decoded == nil {
		return defs, refused
	}
	accepted := map[string]bool{}
	for _, t := range decoded.Tools {
		accepted[t.Name] = true
	}
	for _, d := range defs {
		if !accepted[d.name] && refused[d.name] == nil {
			refused[d.name] = errMark
		}
	}
	return defs, refused
}

// emptyCursor stands for an empty cursor, which the protocol library would omit from the request.
const emptyCursor = "lathe: the empty cursor"

// nextCursor returns the cursor of the next page, or "" after the last page. From protocol version 2026-07-28 on, an empty cursor is valid:
// nextCursor returns emptyCursor for it.
func (x *session) nextCursor(result []byte) string {
	cursor := rawjson.At(result, "nextCursor")
	info := x.mcp.InitializeResult()
	if string(cursor) == `""` && info != nil && info.ProtocolVersion >= statelessProtocol {
		return emptyCursor
	}
	return rawjson.Text(cursor)
}

// listParams are the parameters of a request for a page with an empty cursor.
type listParams struct{ *mcp.ListToolsParams }

// MarshalJSON encodes the cursor even if it is empty.
func (p listParams) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Meta   mcp.Meta `json:"_meta,omitempty"`
		Cursor string   `json:"cursor"`
	}{p.Meta, ""})
}

// withEmptyCursor replaces emptyCursor in a request for a page by the empty cursor.
func withEmptyCursor(req mcp.Request) mcp.Request {
	list, ok := req.GetParams().(*mcp.ListToolsParams)
	session, _ := req.GetSession().(*mcp.ClientSession)
	if !ok || list.Cursor != emptyCursor || session == nil {
		return req
	}
	return &mcp.ClientRequest[mcp.Params]{Session: session, Params: listParams{list}}
}

// freshFor returns the time for which a page of a list is valid according to its hint ttlMs, within limits; 0: no hint that is a whole
// number above 0.
func freshFor(page []byte) time.Duration {
	ms, err := strconv.ParseInt(string(rawjson.At(page, "ttlMs")), 10, 64)
	if err != nil || ms <= 0 {
		return 0
	}
	return max(time.Duration(min(ms, maxFreshMS))*time.Millisecond, minFresh)
}

// shorter returns the shorter of two times; 0 counts as none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

const (
	minFresh   = time.Second      // limits how often the hints of a server make this process list its tools
	maxFreshMS = 24 * 3600 * 1000 // a list with a hint is requested at least once a day
)

// errCached means that the protocol library answered from its cache, because the previous list is still valid by its hint ttlMs.
var errCached = errors.New("the list of tools was not requested: the former one is still valid by its ttlMs, and stays")
