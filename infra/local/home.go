package local

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// home answers GET / with what this is and how to call it; everything else is
// the gateway's. The API in the cloud has no such route.
func home(s *Stack, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" || r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, s.greeting())
	})
}

func (s *Stack) greeting() string {
	var b strings.Builder
	fmt.Fprintf(&b, `Sunhwa rewrites the comments of a target politely, as one job a target.
This is the local stack: the functions of the cloud behind a local front.

`)
	for _, p := range s.parts {
		mark := ""
		if p.StandIn {
			mark = " (stand-in)"
		}
		fmt.Fprintf(&b, "  %-9s %s%s\n", p.Name, p.What, mark)
	}
	for _, w := range s.warnings {
		fmt.Fprintf(&b, "\nWARNING: %s\n", w)
	}
	fmt.Fprintf(&b, `
Start a job:
  curl -i -X POST %[1]s/targets/course-101/jobs -H 'Content-Type: application/json' \
    -d '{"comments":[{"id":"c1","text":"This lecture was terrible."}]}'
Look at it, read its results, publish them, read what is published:
  curl %[1]s/targets/course-101/jobs/latest
  curl %[1]s/jobs/<jobId>/results
  curl -X POST %[1]s/jobs/<jobId>/apply
  curl %[1]s/targets/course-101/comments
Cancel a job, erase what is published:
  curl -X DELETE %[1]s/jobs/<jobId>
  curl -X DELETE %[1]s/targets/course-101/comments
Worker invocations that failed for good, as Lambda's on-failure destination would get them:
  curl %[2]s/on-failure
`, s.url, s.invokeURL)
	return b.String()
}
