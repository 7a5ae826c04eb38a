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

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/vendor"
)

// A textKind is a kind of text values.
type textKind struct {
	what  string // description for the reference
	check func(string) error
}

// textKinds are the kinds of texts, by the value of the tag `is`.
var textKinds = map[string]textKind{
	"":          {"text", func(string) error { return nil }},
	"word":      {"text", form(maxConfigBytes, `[^ \t\r\n]*`, "%s is more than one word")},
	"label":     {"text", form(64, `[a-z0-9_.-]*`, "%s is not a label: lower-case letters, digits, _ . and -, at most 64")},
	"pattern":   {"text", form(256, `[^ \t\r\n]*`, "a pattern has at most 256 characters and no blanks")},
	"sentence":  {"text", func(s string) error { _, err := approval.NewSentence(s); return err }},
	"program":   {"path or name", isProgram},
	"file":      {"path", isFile},
	"origin":    {"scheme and host", isOriginText},
	"tool name": {"tool name", isToolName},
	"host:port": {"host:port", form(maxConfigBytes, `(?s:.*:[^:]+)?`, "an address is a host and a port, such as 127.0.0.1:8700")},
	"sha256":    {"64 hex digits", isSHA256},
	keySHA256:   {"64 hex digits", isKeySHA256},
}

// nameChecks are the checks of list items (tag `is`) and of names of entries (tag `names`).
var nameChecks = map[string]func(string) error{
	"":              form(128, `[^ \t\r\n,]+`, "%s is not a name"), // one word of a list
	"algorithm":     form(5, `RS256|ES256|EdDSA`, "%s is none of RS256, ES256, EdDSA"),
	"argument":      form(64, `[!-~]+`, "a name has 1 to 64 printable ASCII characters"), // name of an argument or a query parameter
	"effect":        form(10, `read_only|idempotent|writes`, "an effect is read_only, idempotent or writes"),
	"grant":         newVocabulary("clock random read write").check, // permissions that a manifest can request
	"header":        isHeaderName,
	"host":          form(253, `[^/:@ ]*`, "a host is a name without a port, such as lathe.example.com"),
	"model":         isModelName,
	"offer":         form(50, `_?([A-Za-z0-9-]+_?)+|_`, "a name has 1 to 50 letters, digits, _ and -, with no __ in it"), // name of a resource or prompt
	"operation":     form(512, `\P{Cc}+`, "an operationId has 1 to 512 bytes in one line"),
	"origin":        isOrigin,
	"pattern":       form(64, `[\w*?-]+`, "a pattern has 1 to 64 letters, digits, _ and -, and * or ? for others"), // pattern for names of tools
	"profile":       isProfile,
	"rule":          isRuleName,
	"script":        form(64, `[a-z0-9_.-]+`, "a script's name has lower-case letters, digits, _ . and -"),
	"server":        isServerName,
	"tool":          isToolName,
	"tool or *":     form(64, `[\w-]+|\*`, toolNameForm),
	"tool prefix":   form(65, `[\w-]{1,64}\*?|\*`, toolNameForm),
	"variable":      isVariable,
	"vendor object": isVendorObject,
	"vendor tool":   form(64, `[!-~]+`, "%s is not the name of a tool in a vendor's API, such as web_search"),
}

const toolNameForm = "a tool name has 1 to 64 letters, digits, _ and -"

// Checks that other parts of the package use, too.
var (
	isToolName = form(64, `[\w-]+`, toolNameForm)
	isVariable = form(maxConfigBytes, `[A-Za-z_]\w*`, "this is not the name of a variable")
	isSHA256   = form(64, `([0-9A-Fa-f]{64})?`, "a SHA-256 has 64 hex digits")
	// isRuleName accepts names that appear in events.
	isRuleName = form(64, `[\w.-]+`, "a name has 1 to 64 letters, digits, _ . and -")
	// isServerName accepts names for the prefix of tools of a server: NAME__tool.
	isServerName = form(32, `[a-z0-9]+([_-][a-z0-9]+)*`, "a server's name has 1 to 32 lower-case letters and digits, with single _ or - between them")
)

// form returns a check that a text has at most most bytes and matches the whole expression. says is the error text, in which %s is replaced
// by the quoted value.
func form(most int, expr, says string) func(string) error {
	match := lazy.Regexp(`^(?:` + expr + `)$`)
	return func(s string) error {
		if len(s) <= most && match().MatchString(s) {
			return nil
		}
		return errors.New(strings.Replace(says, "%s", quote(s), 1))
	}
}

// isProgram accepts the path or name of a program without arguments.
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

// keySHA256 is the name of the text kind for the SHA-256 of a key.
const keySHA256 = "key sha256"

// isKeySHA256 accepts the SHA-256 of a key, but not that of an empty text or an empty line.
func isKeySHA256(s string) error {
	for _, empty := range []string{"", "\n", "\r\n"} {
		if sum := sha256.Sum256([]byte(empty)); s == hex.EncodeToString(sum[:]) {
			return errors.New("is the SHA-256 of an empty text: the variable that was hashed was empty or not set; `lathe keys new` prints a key with its hash")
		}
	}
	return isSHA256(s)
}

func isOrigin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return errors.New("an origin is a scheme and a host, such as https://chat.example.com")
	}
	return nil
}

// isOriginText accepts an origin or an empty text.
func isOriginText(s string) error {
	if s == "" {
		return nil
	}
	return isOrigin(s)
}

var modelName = form(64, `[\w.:/-]+`, "a model's name has 1 to 64 letters, digits, _ . : / and -, and does not begin with sim/")

func isModelName(s string) error {
	if strings.HasPrefix(s, "sim/") {
		s = ""
	}
	return modelName(s)
}

// isVendorObject accepts a kind of objects, the id of an object, or *. It refuses a word without digits that is not a kind.
func isVendorObject(s string) error {
	kinds := vendor.Kinds()
	if s == everything || slices.Contains(kinds, s) {
		return nil
	}
	if s == "" || len(s) > 512 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("an id has 1 to 512 characters without blanks")
	}
	if !strings.ContainsAny(s, "0123456789-/:") {
		return fmt.Errorf("%s is no id and no kind of objects (%s)", quote(s), strings.Join(kinds, ", "))
	}
	return nil
}

var headerName = form(maxConfigBytes, `[\w!#$%&'*+.^|~`+"`"+`-]+`, "this is not the name of a header")

func isHeaderName(s string) error {
	switch textproto.CanonicalMIMEHeaderKey(s) {
	case "Content-Length", "Content-Type", "Transfer-Encoding", "Host", "Connection":
		return errors.New("this header is the transport's own")
	}
	return headerName(s)
}
