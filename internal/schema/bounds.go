package schema

import (
	"fmt"
	"strconv"
)

// checkBounds returns an error if the nesting or a number in b exceeds the limits. depth is the nesting around b. It does not check whether
// b is JSON.
//
// Numbers are limited because they are compared exactly: a number with a huge exponent would be expanded to all its digits.
func checkBounds(b []byte, depth int) error {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("nested deeper than %d", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || '0' <= c && c <= '9':
			start := i
			for i+1 < len(b) && isNumberByte(b[i+1]) {
				i++
			}
			if err := checkNumber(b[start : i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

func checkNumber(num []byte) error {
	if len(num) > MaxDigits {
		return fmt.Errorf("a number of more than %d digits", MaxDigits)
	}
	for i, c := range num {
		if c == 'e' || c == 'E' {
			if n, err := strconv.Atoi(string(num[i+1:])); err != nil || n > MaxExponent || n < -MaxExponent {
				return fmt.Errorf("a number whose exponent is beyond %d", MaxExponent)
			}
			break
		}
	}
	return nil
}

// checkCounts returns an error if a document has too many references, or too many objects and booleans, whose number is at least that of
// the subschemas.
func checkCounts(doc any) error {
	subschemas, references := 0, 0
	var count func(v any)
	count = func(v any) {
		switch v := v.(type) {
		case bool:
			subschemas++
		case map[string]any:
			subschemas++
			for name, e := range v {
				if name == "$ref" || name == "$dynamicRef" {
					references++
				}
				count(e)
			}
		case []any:
			for _, e := range v {
				count(e)
			}
		}
	}
	count(doc)
	if subschemas > MaxSubschemas {
		return fmt.Errorf("%d objects and booleans, at most %d are allowed", subschemas, MaxSubschemas)
	}
	if references > MaxReferences {
		return fmt.Errorf("%d references, at most %d are allowed", references, MaxReferences)
	}
	return nil
}
