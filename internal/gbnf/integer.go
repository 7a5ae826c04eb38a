package gbnf

import (
	"math"
	"strconv"
	"strings"
)

// integerDigits is the maximal number of digits of an integer without limits: all of them fit into 64 bits.
const integerDigits = 18

// integers returns the expression that matches the integers from least to most, without leading zeros. math.MinInt64 and math.MaxInt64
// mean no limit: the integer then has at most 18 digits. ok is false if there is no such integer.
func integers(least, most int64) (expr string, ok bool) {
	const bound = 999_999_999_999_999_999
	if least > most {
		return "", false
	}
	if most == math.MaxInt64 && (least == math.MinInt64 || least == 0) {
		expr = `("0" | [1-9] [0-9]{0,` + strconv.Itoa(integerDigits-1) + `})`
		if least < 0 {
			expr = `("-"? ` + expr + `)`
		}
		return expr, true
	}
	least, most = max(least, -bound), min(most, bound)
	if least > most {
		return "", false
	}
	var list []string
	if least < 0 {
		from, to := int64(1), -least
		if most < 0 {
			from = -most
		}
		list = append(list, `"-" `+AnyOf(naturals(from, to)...))
	}
	if most >= 0 {
		list = append(list, naturals(max(least, 0), most)...)
	}
	return AnyOf(list...), true
}

// naturals returns alternatives that match the numbers from least to most, with 0 ≤ least ≤ most < 10^integerDigits. Each digitRange has
// numbers of equal length: 7 to 250 are 7 to 9, 10 to 99 and 100 to 250.
func naturals(least, most int64) []string {
	var list []string
	if least == 0 {
		list = append(list, `"0"`)
		least = 1
	}
	for least <= most {
		from := strconv.FormatInt(least, 10)
		end := int64(math.Pow10(len(from))) - 1
		list = append(list, digitRange(from, strconv.FormatInt(min(most, end), 10))...)
		least = end + 1
	}
	return list
}

// digitRange returns alternatives that match the numbers from a to b, which have the same length. For 137 to 152 they are
// `"1" "3" [7-9]`, `"1" [4-4] [0-9]` and `"1" "5" [0-2]`.
func digitRange(a, b string) []string {
	n := 0 // number of equal digits at the beginning
	for n < len(a) && a[n] == b[n] {
		n++
	}
	head, a, b := a[:n], a[n:], b[n:]
	with := func(tail string) string { // tail after head
		switch {
		case head == "":
			return tail
		case tail == "":
			return Literal(head)
		}
		return Literal(head) + " " + tail
	}
	if a == "" {
		return []string{with("")}
	}
	if strings.Trim(a, "0") == "" && strings.Trim(b, "9") == "" {
		return []string{with(strings.TrimSuffix(anyDigits(len(a)), " "))}
	}
	if len(a) == 1 {
		return []string{with("[" + a + "-" + b + "]")}
	}
	// There are three parts: the numbers that begin as a does, those whose first digit is between, and those that begin as b does. If a ends
	// in zeros, or b in nines, the second part includes the first or the last.
	first, last := a[0], b[0]
	var list []string
	if strings.Trim(a[1:], "0") != "" {
		for _, alternative := range digitRange(a[1:], strings.Repeat("9", len(a)-1)) {
			list = append(list, with(Literal(a[:1])+" "+alternative))
		}
		first++
	}
	var tail []string
	if strings.Trim(b[1:], "9") != "" {
		for _, alternative := range digitRange(strings.Repeat("0", len(b)-1), b[1:]) {
			tail = append(tail, with(Literal(b[:1])+" "+alternative))
		}
		last--
	}
	if first <= last {
		list = append(list, with("["+string(first)+"-"+string(last)+"] "+anyDigits(len(a)-1)))
	}
	return append(list, tail...)
}

// anyDigits returns the expression that matches n digits.
func anyDigits(n int) string {
	if n == 1 {
		return "[0-9]"
	}
	return "[0-9]{" + strconv.Itoa(n) + "}"
}
