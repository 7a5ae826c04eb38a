package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// zoneOf returns the IANA zone in the clause, or that of a city or country in it; "" if none exists.
func zoneOf(clause string) string {
	for w := range strings.FieldsSeq(clause) {
		w = strings.Trim(w, ",.?!\"'")
		if area, _, ok := strings.Cut(w, "/"); ok && zoneAreas()[area] {
			return w
		}
	}
	low := " " + strings.ToLower(clause) + " "
	byName, names := zones()
	for _, c := range names {
		if i := strings.Index(low, c); i > 0 && !isWord(rune(low[i-1])) && !isWord(rune(low[i+len(c)])) {
			return byName[c]
		}
	}
	return ""
}

var zoneAreas = wordSet(`Africa America Antarctica Asia Atlantic Australia Europe Indian Pacific Etc`)

// zoneNames are the cities and countries whose zones the simulated models know, by zone.
const zoneNames = `
Asia/Tokyo: tokyo, osaka, japan
Asia/Seoul: seoul
Asia/Shanghai: beijing, shanghai
Asia/Hong_Kong: hong kong
Asia/Singapore: singapore
Asia/Bangkok: bangkok
Asia/Jakarta: jakarta
Asia/Manila: manila
Asia/Kolkata: mumbai, delhi, india
Asia/Karachi: karachi
Asia/Dubai: dubai
Asia/Tehran: tehran
Europe/Istanbul: istanbul
Europe/Moscow: moscow
Europe/Kyiv: kyiv
Europe/Helsinki: helsinki
Europe/Athens: athens
Europe/Berlin: berlin, munich, hamburg, cologne, germany
Europe/Paris: paris
Europe/Madrid: madrid
Europe/Rome: rome
Europe/Vienna: vienna
Europe/Zurich: zurich
Europe/Amsterdam: amsterdam
Europe/Brussels: brussels
Europe/Stockholm: stockholm
Europe/Oslo: oslo
Europe/Copenhagen: copenhagen
Europe/Prague: prague
Europe/Warsaw: warsaw
Europe/Lisbon: lisbon
Europe/Dublin: dublin
Europe/London: london
Africa/Cairo: cairo
Africa/Lagos: lagos
Africa/Nairobi: nairobi
Africa/Johannesburg: johannesburg
America/New_York: new york, boston
America/Toronto: toronto
America/Chicago: chicago
America/Denver: denver
America/Los_Angeles: los angeles, san francisco, seattle
America/Vancouver: vancouver
America/Mexico_City: mexico city
America/Bogota: bogota
America/Lima: lima
America/Santiago: santiago
America/Argentina/Buenos_Aires: buenos aires
America/Sao_Paulo: são paulo, sao paulo
Australia/Sydney: sydney
Australia/Melbourne: melbourne
Australia/Perth: perth
Pacific/Auckland: auckland
Pacific/Honolulu: honolulu
UTC: utc
`

// zones returns the zone of each name in zoneNames, and the names, the longest first, so that a name is found before a shorter one inside
// it.
var zones = sync.OnceValues(func() (byName map[string]string, names []string) {
	byName = map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(zoneNames), "\n") {
		zone, list, _ := strings.Cut(line, ": ")
		for name := range strings.SplitSeq(list, ", ") {
			byName[name] = zone
		}
	}
	return byName, slices.SortedFunc(maps.Keys(byName), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
})
