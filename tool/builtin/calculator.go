package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/tool"
)

// Limits of the calculator.
const (
	maxExpression = 1_000  // bytes
	maxNesting    = 64     // nesting of parentheses, signs and powers
	maxExponent   = 1_024  // of ^ and of a number with e
	maxBits       = 16_384 // of the numerator or denominator of an intermediate result
	maxDigits     = 1_000  // after the point, of an exact result
	roundedDigits = 34     // significant digits of an inexact result
)

type calcArgs struct {
	Expression string `json:"expression" jsonschema:"what to compute, such as (1 + 2) * 3.5 ^ 2; operators + - * / % ^ and parentheses"`
}

type calcResult struct {
	Result json.RawMessage `json:"result"`
	Exact  bool            `json:"exact"`
}

// Calculator returns the tool calculator, which evaluates an arithmetic expression in exact fractions. The result is a JSON number with all
// its digits; if it has no finite decimal form, it is a string of 34 significant digits and `exact` is false. % is the remainder of a
// division truncated towards zero. ^ requires whole exponents, is right-associative and binds stronger than a sign: -2^2 is -4.
func Calculator() lathe.Tool {
	return tool.Func("calculator", "Compute an arithmetic expression exactly.",
		func(_ context.Context, in calcArgs) (calcResult, error) {
			v, err := compute(in.Expression)
			if err != nil {
				return calcResult{}, tool.Fail(lathe.CodeInvalidArguments, "%s", err)
			}
			text, exact := decimal(v)
			if !exact {
				text = strconv.Quote(text)
			}
			return calcResult{json.RawMessage(text), exact}, nil
		}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"result", "exact"}, Origin: origin})
}

var errTooLarge = errors.New("the numbers get too large")

// compute evaluates an expression. The texts of its errors are for the model.
func compute(expression string) (*big.Rat, error) {
	if len(expression) > maxExpression {
		return nil, errors.New("the expression is longer than 1000 bytes")
	}
	p := &calc{in: expression}
	v, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.peek() != 0 {
		return nil, p.unexpected()
	}
	return v, nil
}

// calc is a recursive descent parser that evaluates the expression as it parses.
type calc struct {
	in    string
	pos   int
	width int // length of the token that peek returned
	depth int
}

// signs are other spellings of operators.
var signs = []struct {
	text string
	op   byte
}{{"×", '*'}, {"·", '*'}, {"÷", '/'}, {"−", '-'}, {"**", '^'}}

// peek returns the next operator, digit, point or parenthesis, or 0 at the end.
func (p *calc) peek() byte {
	for p.pos < len(p.in) && strings.IndexByte(" \t\r\n", p.in[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos == len(p.in) {
		return 0
	}
	for _, s := range signs {
		if p.width = len(s.text); strings.HasPrefix(p.in[p.pos:], s.text) {
			return s.op
		}
	}
	p.width = 1
	return p.in[p.pos]
}

// next skips the token that peek returned.
func (p *calc) next() { p.pos += p.width }

func (p *calc) unexpected() error {
	if p.pos >= len(p.in) {
		return errors.New("the expression ends too early")
	}
	return errors.New("the expression cannot be read at byte " + strconv.Itoa(p.pos+1) + ": use numbers, + - * / % ^ and parentheses")
}

func (p *calc) enter() error {
	if p.depth++; p.depth > maxNesting {
		return errors.New("the expression is nested too deeply")
	}
	return nil
}

// sum = product { ("+" | "-") product }
func (p *calc) sum() (*big.Rat, error) {
	v, err := p.product()
	for err == nil && strings.IndexByte("+-", p.peek()) >= 0 {
		v, err = p.operate(v, p.product)
	}
	return v, err
}

// product = signed { ("*" | "/" | "%") signed }
func (p *calc) product() (*big.Rat, error) {
	v, err := p.signed()
	for err == nil && strings.IndexByte("*/%", p.peek()) >= 0 {
		v, err = p.operate(v, p.signed)
	}
	return v, err
}

// operate applies the next operator to v and the operand behind it.
func (p *calc) operate(v *big.Rat, operand func() (*big.Rat, error)) (*big.Rat, error) {
	op := p.peek()
	p.next()
	w, err := operand()
	if err != nil {
		return nil, err
	}
	switch {
	case op == '+':
		return bounded(new(big.Rat).Add(v, w))
	case op == '-':
		return bounded(new(big.Rat).Sub(v, w))
	case op == '*':
		return bounded(new(big.Rat).Mul(v, w))
	case w.Sign() == 0:
		return nil, errors.New("division by zero")
	case op == '/':
		return bounded(new(big.Rat).Quo(v, w))
	}
	return bounded(remainder(v, w))
}

// signed = ("+" | "-") signed | power
func (p *calc) signed() (*big.Rat, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	switch p.peek() {
	case '+':
		p.next()
		return p.signed()
	case '-':
		p.next()
		v, err := p.signed()
		if err != nil {
			return nil, err
		}
		return v.Neg(v), nil
	}
	return p.power()
}

// power = atom [ "^" signed ]
func (p *calc) power() (*big.Rat, error) {
	base, err := p.atom()
	if err != nil || p.peek() != '^' {
		return base, err
	}
	p.next()
	exp, err := p.signed()
	if err != nil {
		return nil, err
	}
	return raise(base, exp)
}

// atom = number | "(" sum ")"
func (p *calc) atom() (*big.Rat, error) {
	switch c := p.peek(); {
	case c == '(':
		p.next()
		if err := p.enter(); err != nil {
			return nil, err
		}
		v, err := p.sum()
		p.depth--
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, p.unexpected()
		}
		p.next()
		return v, nil
	case c == '.' || c >= '0' && c <= '9':
		return p.number()
	}
	return nil, p.unexpected()
}

var numeral = lazy.Regexp(`^([0-9.]+)(?:[eE][+-]?([0-9]*))?`)

// number = digits with at most one point, and an optional e with an exponent
func (p *calc) number() (*big.Rat, error) {
	m := numeral().FindStringSubmatch(p.in[p.pos:])
	switch {
	case m[1] == "." || strings.Count(m[1], ".") > 1:
		return nil, p.unexpected()
	case len(m[0]) > len(m[1]) && m[2] == "":
		p.pos += len(m[1])
		return nil, p.unexpected()
	case m[2] != "":
		if exp, err := strconv.Atoi(m[2]); err != nil || exp > maxExponent {
			return nil, errTooLarge
		}
	}
	v, ok := new(big.Rat).SetString(m[0])
	if !ok {
		return nil, p.unexpected()
	}
	p.pos += len(m[0])
	return bounded(v)
}

// remainder returns v - w * trunc(v/w), which has the sign of v.
func remainder(v, w *big.Rat) *big.Rat {
	q := new(big.Rat).Quo(v, w)
	whole := new(big.Rat).SetInt(new(big.Int).Quo(q.Num(), q.Denom()))
	return new(big.Rat).Sub(v, whole.Mul(whole, w))
}

func raise(base, exp *big.Rat) (*big.Rat, error) {
	if !exp.IsInt() {
		return nil, errors.New("an exponent must be a whole number")
	}
	e := exp.Num()
	if base.Sign() == 0 && e.Sign() < 0 {
		return nil, errors.New("division by zero")
	}
	n := new(big.Int).Abs(e)
	if !n.IsInt64() || n.Int64() > maxExponent {
		return nil, errors.New("an exponent must be at most 1024")
	}
	if int64(max(base.Num().BitLen(), base.Denom().BitLen()))*n.Int64() > 2*maxBits {
		return nil, errTooLarge
	}
	num, den := new(big.Int).Exp(base.Num(), n, nil), new(big.Int).Exp(base.Denom(), n, nil)
	if e.Sign() < 0 {
		num, den = den, num
	}
	return bounded(new(big.Rat).SetFrac(num, den))
}

func bounded(v *big.Rat) (*big.Rat, error) {
	if v.Num().BitLen() > maxBits || v.Denom().BitLen() > maxBits {
		return nil, errTooLarge
	}
	return v, nil
}

// decimal returns v with all its digits if it has a finite decimal form of at most maxDigits, and rounded otherwise.
func decimal(v *big.Rat) (text string, exact bool) {
	if n, finite := v.FloatPrec(); finite && n <= maxDigits {
		return v.FloatString(n), true
	}
	f := new(big.Float).SetPrec(256).SetRat(v)
	return f.Text('g', roundedDigits), false
}
