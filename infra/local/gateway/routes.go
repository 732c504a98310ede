package gateway

import (
	"net/url"
	"strings"
)

// Route is one route of the API and the function that serves it.
type Route struct {
	// Key is the gateway's route key: method, a space, and the path with its
	// parameters in braces.
	Key string
	// Function is the short name: start, status, apply or comments.
	Function string
}

// Routes returns every route of Sunhwa's HTTP API. The template declares the
// same ones.
func Routes() []Route {
	return []Route{
		{"POST /targets/{targetId}/jobs", "start"},
		{"GET /targets/{targetId}/jobs/latest", "status"},
		{"GET /jobs/{jobId}", "status"},
		{"GET /jobs/{jobId}/results", "status"},
		{"DELETE /jobs/{jobId}", "status"},
		{"POST /jobs/{jobId}/apply", "apply"},
		{"GET /targets/{targetId}/comments", "comments"},
		{"DELETE /targets/{targetId}/comments", "comments"},
	}
}

// match finds the route of a request by its method and its path as it was sent,
// and returns the path's parameters, each decoded once. An escaped slash stays
// inside its segment; an empty segment matches no parameter.
func match(routes []Route, method, escapedPath string) (Route, map[string]string, bool) {
	segments := strings.Split(escapedPath, "/")
	for _, r := range routes {
		m, pattern, _ := strings.Cut(r.Key, " ")
		if m != method {
			continue
		}
		if params, ok := matchPath(strings.Split(pattern, "/"), segments); ok {
			return r, params, true
		}
	}
	return Route{}, nil, false
}

func matchPath(pattern, segments []string) (map[string]string, bool) {
	if len(pattern) != len(segments) {
		return nil, false
	}
	params := map[string]string{}
	for i, p := range pattern {
		value, err := url.PathUnescape(segments[i])
		if err != nil {
			return nil, false
		}
		if name, ok := strings.CutPrefix(p, "{"); ok {
			if value == "" {
				return nil, false
			}
			params[strings.TrimSuffix(name, "}")] = value
		} else if value != p {
			return nil, false
		}
	}
	return params, true
}
