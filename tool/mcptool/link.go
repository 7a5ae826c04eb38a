package mcptool

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/egress"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Limits of the addresses that a server wants a person to visit.
const (
	maxLinkBytes = 2 << 10
	maxLinkID    = 256
	maxVisits    = 16               // under way, of one connection
	visitTime    = 10 * time.Minute // for which a visit keeps calls from running out of their idle timeout
)

// codeVisitFirst is the JSON-RPC error of a server that wants an address visited before it does what it is asked.
const codeVisitFirst = "-32042"

var errLink = errors.New("an address that is not written in plain form, or is not https")

// readLink reads a question in URL mode. The address is shown to a person and never reached from here.
func readLink(server string, params []byte) (*question, error) {
	message, _ := text(params, "message")
	message, _ = clean(message)
	address, _ := text(params, "url")
	if err := checkLink(address); err != nil {
		return nil, err
	}
	id, _ := text(params, "elicitationId")
	if len(id) > maxLinkID {
		return nil, errLink
	}
	return &question{id: id, ask: lathe.Question{Link: &lathe.Link{URL: address,
		Message: "the MCP server " + server + " asks: " + cutText(message, maxQuestionBytes)}}}, nil
}

// checkLink takes an address whose host a person can read off: https, or http on this machine, of
// printable ASCII and without a user. Escapes in a host are looked at as what they stand for.
func checkLink(address string) error {
	if len(address) > maxLinkBytes || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return errLink
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return errLink
	}
	if _, plain := egress.PlainHost(u.Hostname()); !plain {
		return errLink
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errLink
}

// wantsVisit reports whether an error asks a person to visit an address first.
func wantsVisit(fault []byte) bool {
	if len(fault) == 0 || fault[0] != '{' {
		return false
	}
	code, _ := rawjson.Get(fault, "code")
	return string(code) == codeVisitFirst
}

// visits asks the person behind a call to visit what the server wants visited first. Without an error
// the call may be made again.
func (s *supervisor) visits(ctx context.Context, fault []byte) error {
	questions := map[string]lathe.Question{}
	var hosts []string
	for raw := range rawjson.Elements(elicitations(fault)) {
		q, err := (*question)(nil), errLink
		if mode, _ := text(orEmpty(raw), "mode"); raw[0] == '{' && mode == "url" && len(questions) < maxInputs {
			q, err = readLink(s.conf.Name, raw)
		}
		if err != nil {
			s.refusedRequest()
			return &inputError{"the server wants a person to visit something first that cannot be shown: " + err.Error()}
		}
		q.ask.Link.Before = true
		questions["link "+strconv.Itoa(len(questions)+1)] = q.ask
		if u, err := url.Parse(q.ask.Link.URL); err == nil {
			hosts = append(hosts, u.Hostname())
		}
	}
	if len(questions) == 0 {
		return &inputError{"the server wants a person to visit an address first, and names none"}
	}
	first := "the server wants a person to visit " + cutText(strings.Join(hosts, ", "), maxMessage) + " first"
	if s.conf.Elicitation != ElicitAskURLs {
		s.refusedRequest()
		return &inputError{first + ", which its configuration does not allow: elicitation is ask-urls where it does"}
	}
	got, err := lathe.AskerFrom(ctx).Ask(ctx, questions)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &inputError{first + ", and there is nobody who could be asked"}
	}
	for name := range questions {
		if a, ok := got[name]; !ok || a.Refused != "" {
			return &inputError{first + ", and the person does not"}
		}
	}
	return nil
}

// elicitations are the questions of an error, as a JSON array.
func elicitations(fault []byte) []byte {
	data, ok := rawjson.Get(fault, "data")
	if !ok || data[0] != '{' {
		return []byte("[]")
	}
	list, ok := rawjson.Get(data, "elicitations")
	if !ok || list[0] != '[' {
		return []byte("[]")
	}
	return list
}

// visiting keeps calls from running out of their idle timeout until the server says that a visit is
// over, for a while at most.
func (t *tap) visiting(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == "" || t.visits[id] != nil || len(t.visits) >= maxVisits {
		return
	}
	if t.visits == nil {
		t.visits = map[string]*time.Timer{}
	}
	t.held++
	t.visits[id] = time.AfterFunc(visitTime, func() { t.visited(id) })
}

// visited ends what visiting began.
func (t *tap) visited(id string) {
	t.mu.Lock()
	timer := t.visits[id]
	delete(t.visits, id)
	t.mu.Unlock()
	if timer != nil {
		timer.Stop()
		t.release()
	}
}
