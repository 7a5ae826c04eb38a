package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// A writtenCode is what the code of the server says about the code of an error.
type writtenCode struct {
	statuses []int
	later    bool // some response has Retry-After
	never    bool // every response tells clients not to repeat the request
	places   int
}

var httpStatuses = map[string]int{
	"StatusBadRequest": http.StatusBadRequest, "StatusUnauthorized": http.StatusUnauthorized, "StatusPaymentRequired": http.StatusPaymentRequired,
	"StatusForbidden": http.StatusForbidden, "StatusNotFound": http.StatusNotFound, "StatusMethodNotAllowed": http.StatusMethodNotAllowed,
	"StatusRequestTimeout": http.StatusRequestTimeout, "StatusConflict": http.StatusConflict, "StatusGone": http.StatusGone,
	"StatusRequestEntityTooLarge": http.StatusRequestEntityTooLarge, "StatusUnsupportedMediaType": http.StatusUnsupportedMediaType,
	"StatusUnprocessableEntity": http.StatusUnprocessableEntity, "StatusTooManyRequests": http.StatusTooManyRequests,
	"StatusInternalServerError": http.StatusInternalServerError, "StatusNotImplemented": http.StatusNotImplemented, "StatusBadGateway": http.StatusBadGateway,
	"StatusServiceUnavailable": http.StatusServiceUnavailable, "StatusGatewayTimeout": http.StatusGatewayTimeout, "statusClientGone": 499,
}

// writtenCodes returns the codes that the sources write as literals into problems and errors of wires.
func writtenCodes(t *testing.T) map[string]*writtenCode {
	t.Helper()
	found := map[string]*writtenCode{}
	gateway := filepath.Join("..", "internal", "gateway")
	for _, root := range []string{".", gateway, filepath.Join("..", "internal", "wire")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "console" || d.Name() == "mcp"):
				return fs.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			readCodes(file, found, root == "." || root == gateway)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 60 {
		t.Fatalf("the sources have %d codes: the search is broken", len(found))
	}
	return found
}

func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if text, err := strconv.Unquote(l.Value); err == nil {
			return text
		}
	}
	return ""
}

// constructors are the functions whose first argument is the code of a problem with that status.
var constructors = map[string]int{"notFound": http.StatusNotFound, "unauthorized": http.StatusUnauthorized, "forbidden": http.StatusForbidden,
	"conflict": http.StatusConflict, "unavailable": http.StatusServiceUnavailable}

// readCall adds the code of the problem that a call of another constructor makes.
func readCall(name string, args []ast.Expr, add func(code string, status int, later, never bool)) {
	switch {
	case name == "New" && len(args) > 2:
		if sel, ok := args[0].(*ast.SelectorExpr); ok {
			add(literal(args[1]), httpStatuses[sel.Sel.Name], false, false)
		} else if id, ok := args[0].(*ast.Ident); ok {
			add(literal(args[1]), httpStatuses[id.Name], false, false)
		}
	case name == "Overloaded":
		add("overloaded", http.StatusServiceUnavailable, true, false)
	case name == "RateLimited":
		add("rate_limit_exceeded", http.StatusTooManyRequests, true, false)
	case name == "badRequest":
		add("invalid_request", http.StatusBadRequest, false, false)
	case name == "internalError":
		add("internal_error", http.StatusInternalServerError, false, false)
	}
}

// codedStatus returns the status of a problem that gets another code.
func codedStatus(e ast.Expr) int {
	if call, ok := e.(*ast.CallExpr); ok {
		if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "badRequest" {
			return http.StatusBadRequest
		}
	}
	return 0
}

// readCodes adds the codes of a file: of literals of problem, of calls to its constructors, of assignments to a field Code, and, if
// constants is true, of constants whose names begin with code.
func readCodes(file *ast.File, found map[string]*writtenCode, constants bool) {
	add := func(code string, status int, later, never bool) {
		if code == "" {
			return
		}
		c := found[code]
		if c == nil {
			c = &writtenCode{never: true}
			found[code] = c
		}
		if status != 0 && !slices.Contains(c.statuses, status) {
			c.statuses = append(c.statuses, status)
		}
		c.later, c.never, c.places = c.later || later, c.never && never, c.places+1
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CompositeLit:
			if !isProblem(x.Type) {
				return true
			}
			var code string
			var status int
			var later, never bool
			for _, e := range x.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				switch key, _ := kv.Key.(*ast.Ident); key.Name {
				case "Code":
					code = literal(kv.Value)
				case "Status":
					switch v := kv.Value.(type) {
					case *ast.SelectorExpr:
						status = httpStatuses[v.Sel.Name]
					case *ast.Ident:
						status = httpStatuses[v.Name]
					}
				case "RetryAfter":
					later = true
				case "NoRetry":
					never = true
				}
			}
			add(code, status, later, never)
		case *ast.CallExpr:
			switch fun := x.Fun.(type) {
			case *ast.Ident:
				if status := constructors[fun.Name]; status != 0 {
					add(literal(x.Args[0]), status, fun.Name == "unavailable", false)
				} else {
					readCall(fun.Name, x.Args, add)
				}
			case *ast.SelectorExpr:
				if fun.Sel.Name == "WithCode" {
					add(literal(x.Args[0]), codedStatus(fun.X), false, false)
				} else {
					readCall(fun.Sel.Name, x.Args, add)
				}
			}
		case *ast.AssignStmt:
			if field, ok := x.Lhs[0].(*ast.SelectorExpr); ok && field.Sel.Name == "Code" {
				add(literal(x.Rhs[0]), 0, false, false)
			}
		case *ast.ValueSpec:
			if constants && strings.HasPrefix(x.Names[0].Name, "code") && len(x.Values) > 0 {
				add(literal(x.Values[0]), 0, false, false)
			}
		}
		return true
	})
}

// isProblem reports whether e names the type of problems: here, in its package, or in others of the gateway.
func isProblem(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "problem" || e.Name == "Problem"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Problem"
	default:
		return false
	}
}

// The codes of ended runs are their reasons, and those of failures of the model server are kinds: the sources have no literals
// of them.
var derivedCodes = []string{
	string(lathe.ReasonNoToolCalls), string(lathe.ReasonToolError), string(lathe.ReasonUnknownTool), string(lathe.ReasonCancelled), string(lathe.ReasonInterrupted),
	string(lathe.UpstreamLoading), string(lathe.CodeNotFound), string(lathe.CodePolicyDenied), string(lathe.CodeBudgetExhausted), string(lathe.CodePriceUnknown),
	string(lathe.CodeTooManyTools),
}

// TestEveryHTTPErrorCodeIsDocumented compares the table of docs/errors.md with the codes in the sources: every code has one
// row with its statuses, and every row is a code.
func TestEveryHTTPErrorCodeIsDocumented(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	text, err := os.ReadFile(filepath.Join("..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Codes of HTTP responses\n")
	section, _, ended := strings.Cut(section, "\n## ")
	if !ok || !ended {
		t.Fatal("docs/errors.md has no section of HTTP codes")
	}
	rows := map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if anchor, code, found := strings.Cut(cells[0], "</a>`"); found && len(cells) == 4 {
			code = strings.Trim(code, "`")
			if anchor != `<a id="`+code+`">` { // the type of a problem leads there
				t.Errorf("docs/errors.md: %s has the anchor %s", code, anchor)
			}
			if rows[code] != nil {
				t.Errorf("%s has two rows", code)
			}
			rows[code] = cells
		}
	}
	written := writtenCodes(t)
	for code, c := range written {
		row := rows[code]
		if row == nil {
			t.Errorf("docs/errors.md has no row for %s, with the statuses %v", code, c.statuses)
			continue
		}
		for _, status := range c.statuses {
			if !slices.Contains(strings.Split(row[1], ", "), strconv.Itoa(status)) {
				t.Errorf("docs/errors.md: %s has the status %s, want %d, too", code, row[1], status)
			}
		}
		if c.later && row[2] != "later" || c.never && row[2] != "no" {
			t.Errorf("docs/errors.md: again is %q for %s: some response has Retry-After: %t; each forbids a repetition: %t", row[2], code, c.later, c.never)
		}
	}
	for code, row := range rows {
		if written[code] == nil && !slices.Contains(derivedCodes, code) {
			t.Errorf("docs/errors.md has a row for %s, which the server does not send", code)
		}
		for status := range strings.SplitSeq(row[1], ", ") {
			if n, err := strconv.Atoi(status); err != nil || n < 400 || n > 599 {
				t.Errorf("docs/errors.md: %s has the status %q", code, status)
			}
		}
		if !slices.Contains([]string{"yes", "later", "no"}, row[2]) {
			t.Errorf("docs/errors.md: again is %q for %s, want yes, later or no", row[2], code)
		}
	}
}
