package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/vendor"
)

// A textKind is what a text may be.
type textKind struct {
	what  string // for the reference
	check func(string) error
}

// textKinds are the kinds of texts, by the name that the tag `is` has for them.
var textKinds = map[string]textKind{
	"":          {"text", func(string) error { return nil }},
	"word":      {"text", isWord},
	"label":     {"text", isMetricLabel},
	"pattern":   {"text", isPatternText},
	"sentence":  {"text", func(s string) error { _, err := approval.NewSentence(s); return err }},
	"program":   {"path or name", isProgram},
	"file":      {"path", isFile},
	"origin":    {"scheme and host", isOriginText},
	"tool name": {"tool name", isToolName},
	"host:port": {"host:port", isHostPort},
	"sha256":    {"64 hex digits", isSHA256},
	keySHA256:   {"64 hex digits", isKeySHA256},
}

// nameChecks are what items of lists (tag `is`) and names of entries (tag `names`) may be.
var nameChecks = map[string]func(string) error{
	"": isName, "algorithm": isAlgorithm, "argument": isArgument, "effect": isEffect, "grant": isGrant, "header": isHeaderName, "host": isHost, "model": isModelName,
	"offer": isOfferName, "operation": isOperation, "origin": isOrigin, "pattern": isPattern, "profile": isProfile, "rule": isRuleName, "script": isScriptName, "server": isServerName,
	"tool": isToolName, "tool or *": isAgentTool, "tool prefix": isToolHead, "variable": isEnvName,
	"vendor object": isVendorObject, "vendor tool": isVendorTool,
}

func isWord(s string) error {
	if strings.ContainsAny(s, " \t\r\n") {
		return fmt.Errorf("%s is more than one word", quote(s))
	}
	return nil
}

// isMetricLabel takes a word that may be a label in metrics.
func isMetricLabel(s string) error {
	if s != "" && !isLabel(s) {
		return fmt.Errorf("%s is not a label: lower-case letters, digits, _ . and -, at most 64", quote(s))
	}
	return nil
}

// isPatternText takes text in which * stands for any characters.
func isPatternText(s string) error {
	if len(s) > 256 || strings.ContainsAny(s, " \t\r\n") {
		return errors.New("a pattern has at most 256 characters and no blanks")
	}
	return nil
}

// isProgram takes the path or name of a program, without arguments.
func isProgram(s string) error {
	if strings.ContainsAny(s, "\t\r\n\x00") || strings.Contains(s, " -") {
		return errors.New("is the program alone: its arguments go into args, one entry each")
	}
	return nil
}

func isFile(s string) error {
	if strings.Contains(s, "${") {
		return errors.New("references ${…} are not read in paths")
	}
	return nil
}

func isHostPort(s string) error {
	if i := strings.LastIndexByte(s, ':'); s != "" && (i < 0 || i == len(s)-1) {
		return errors.New("an address is a host and a port, such as 127.0.0.1:8700")
	}
	return nil
}

func isSHA256(s string) error {
	if b, err := hex.DecodeString(s); s != "" && (err != nil || len(b) != 32) {
		return errors.New("a SHA-256 has 64 hex digits")
	}
	return nil
}

// keySHA256 is the kind of the SHA-256 of a key.
const keySHA256 = "key sha256"

// isKeySHA256 takes the SHA-256 of a key, and refuses those of an empty text and of an empty line.
func isKeySHA256(s string) error {
	for _, empty := range []string{"", "\n", "\r\n"} {
		if sum := sha256.Sum256([]byte(empty)); s == hex.EncodeToString(sum[:]) {
			return errors.New("is the SHA-256 of an empty text: the variable that was hashed was empty or not set; `lathe keys new` prints a key with its hash")
		}
	}
	return isSHA256(s)
}

func isHost(s string) error {
	if len(s) > 253 || strings.ContainsAny(s, "/:@ ") {
		return errors.New("a host is a name without a port, such as lathe.example.com")
	}
	return nil
}

func isOrigin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return errors.New("an origin is a scheme and a host, such as https://chat.example.com")
	}
	return nil
}

// isOriginText accepts an origin and the empty text.
func isOriginText(s string) error {
	if s == "" {
		return nil
	}
	return isOrigin(s)
}

func isModelName(s string) error {
	ok := s != "" && len(s) <= 64 && !strings.HasPrefix(s, "sim/")
	for i := range len(s) {
		c := s[i]
		ok = ok && (c == '/' || c == ':' || isLabel(strings.ToLower(string(c))))
	}
	if !ok {
		return errors.New("a model's name has 1 to 64 letters, digits, _ . : / and -, and does not begin with sim/")
	}
	return nil
}

// isName refuses what cannot be one word of a list.
func isName(s string) error {
	if s == "" || len(s) > 128 || strings.ContainsAny(s, " \t\r\n,") {
		return fmt.Errorf("%s is not a name", quote(s))
	}
	return nil
}

// isOperation takes the id of an operation, as a document has it.
func isOperation(s string) error {
	if s == "" || len(s) > 512 || strings.ContainsFunc(s, unicode.IsControl) {
		return errors.New("an operationId has 1 to 512 bytes in one line")
	}
	return nil
}

func isLabel(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func isToolName(s string) error {
	ok := s != "" && len(s) <= 64
	for i := range len(s) {
		c := s[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return errors.New("a tool name has 1 to 64 letters, digits, _ and -")
	}
	return nil
}

// isVendorTool takes the name of a tool in a vendor's API.
func isVendorTool(s string) error {
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s is not the name of a tool in a vendor's API, such as web_search", quote(s))
	}
	return nil
}

// isVendorObject takes a kind of objects, the id of an object, or * for all. A word without digits that is no kind is a mistake.
func isVendorObject(s string) error {
	kinds := vendor.Kinds()
	if s == everything || slices.Contains(kinds, s) {
		return nil
	}
	if s == "" || len(s) > 512 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("an id has 1 to 512 characters without blanks")
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= '0' && r <= '9' || r == '-' || r == '/' || r == ':' }) {
		return fmt.Errorf("%s is no id and no kind of objects (%s)", quote(s), strings.Join(kinds, ", "))
	}
	return nil
}

func isAgentTool(s string) error {
	if s == "*" {
		return nil
	}
	return isToolName(s)
}

func isToolHead(s string) error {
	if s == "*" {
		return nil
	}
	return isToolName(strings.TrimSuffix(s, "*"))
}

func isEffect(s string) error {
	switch s {
	case "read_only", "idempotent", "writes":
		return nil
	}
	return errors.New("an effect is read_only, idempotent or writes")
}

// isGrant takes what a manifest can ask for.
func isGrant(s string) error {
	return newVocabulary("clock random read write").check(s)
}

// isArgument takes the names that arguments and query parts may have.
func isArgument(s string) error {
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("a name has 1 to 64 printable ASCII characters")
	}
	return nil
}

func isHeaderName(s string) error {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("()<>@,;:\\\"/[]?={}", c) >= 0 {
			return errors.New("this is not the name of a header")
		}
	}
	switch textproto.CanonicalMIMEHeaderKey(s) {
	case "":
		return errors.New("this is not the name of a header")
	case "Content-Length", "Content-Type", "Transfer-Encoding", "Host", "Connection":
		return errors.New("this header is the transport's own")
	}
	return nil
}

func isScriptName(s string) error {
	if !isLabel(s) {
		return errors.New("a script's name has lower-case letters, digits, _ . and -")
	}
	return nil
}

// isOfferName takes the names of resources and prompts.
func isOfferName(s string) error {
	if isToolName(s) != nil || len(s) > 50 || strings.Contains(s, "__") {
		return errors.New("a name has 1 to 50 letters, digits, _ and -, with no __ in it")
	}
	return nil
}

func isEnvName(s string) error {
	if !isVariable(s) {
		return errors.New("this is not the name of a variable")
	}
	return nil
}

// isServerName takes the names under which tools of a server are offered: NAME__tool.
func isServerName(s string) error {
	ok := s != "" && len(s) <= 32
	mark := true // what stands before is no letter or digit
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		ok = ok && (letter || (c == '_' || c == '-') && !mark)
		mark = !letter
	}
	if !ok || mark {
		return errors.New("a server's name has 1 to 32 lower-case letters and digits, with single _ or - between them")
	}
	return nil
}

// isPattern takes patterns of tool names.
func isPattern(s string) error {
	if isToolName(strings.NewReplacer("*", "x", "?", "x").Replace(s)) != nil {
		return errors.New("a pattern has 1 to 64 letters, digits, _ and -, and * or ? for others")
	}
	return nil
}

// isRuleName takes names that stand in events.
func isRuleName(s string) error {
	if !isLabel(strings.ToLower(s)) {
		return errors.New("a name has 1 to 64 letters, digits, _ . and -")
	}
	return nil
}
