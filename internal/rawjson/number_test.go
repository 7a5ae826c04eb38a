package rawjson

import "testing"

func TestIntegerTakesEveryNumberWithoutFraction(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1": "1", "1.0": "1", "1e2": "100", "-12.50e1": "-125", "0.0": "0", "-0": "0", "1E0": "1", "1200e-2": "12", "18446744073709551615.0": "18446744073709551615",
		"1.5": "", "1e-1": "", "1e20": "", "1e19": "10000000000000000000", "1e999999999999999999": "",
		"": "", "-": "", "-.": "", ".": "", "e": "", "x": "", "1x": "", " 1": "", "1 ": "", "+1": "", "01": "", `1,"a":2`: "", "null": "", `"1"`: "",
	} {
		got, ok := Integer([]byte(text))
		if string(got) != want || ok != (want != "") {
			t.Errorf("Integer(%s) is %q, %v, want %q", text, got, ok, want)
		}
	}
}
