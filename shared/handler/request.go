package handler

import (
	"encoding/base64"
	"fmt"
	"mime"
	"regexp"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"sunhwa/shared/job"
)

// request is one event with what is known of its caller.
type request struct {
	event  *events.APIGatewayV2HTTPRequest
	tenant string
	jobID  job.ID // for the access log: the job the call was about, once known
}

// pathID is what a caller may name things with: the unreserved characters of
// RFC 3986, which survive a path as they are. `.` and `..` are excluded apart,
// because clients and proxies resolve them as path segments.
var pathID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

const pathIDRule = "must be 1 to 128 of the characters A-Z a-z 0-9 . _ ~ - and neither . nor .."

func validID(s string) bool { return s != "." && s != ".." && pathID.MatchString(s) }

// job returns the jobId of the path, or ErrNotFound: an id that cannot exist
// names no job.
func (r *request) job() (job.ID, error) {
	id, err := job.ParseID(r.event.PathParameters["jobId"])
	if err != nil {
		return "", err
	}
	r.jobID = id
	return id, nil
}

// target returns the target of the path, or INVALID_REQUEST at `#/targetId`.
func (r *request) target() (job.Target, error) {
	id := r.event.PathParameters["targetId"]
	if !validID(id) {
		return job.Target{}, invalid(fieldError{"#/targetId", pathIDRule})
	}
	return job.Target{Tenant: r.tenant, ID: id}, nil
}

// cursor returns the page's cursor; empty is the first page.
func (r *request) cursor() string { return r.event.QueryStringParameters["cursor"] }

// header returns a header by its name in any case; the gateway sends lower case.
func (r *request) header(name string) string {
	if v, ok := r.event.Headers[strings.ToLower(name)]; ok {
		return v
	}
	for k, v := range r.event.Headers {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// body returns the decoded bytes of a JSON body. It refuses another media type,
// charset or content coding (UNSUPPORTED_MEDIA_TYPE), more than limit bytes
// after base64 (TOO_LARGE), and base64 that is none (INVALID_REQUEST at `#`).
func (r *request) body(limit int) ([]byte, error) {
	if !isJSON(r.header("Content-Type")) {
		return nil, &refusal{code: codeMediaType, detail: "The body must be application/json in UTF-8."}
	}
	if c := r.header("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return nil, &refusal{code: codeMediaType, detail: "The body must not have a Content-Encoding."}
	}
	tooLarge := &refusal{code: codeTooLarge, detail: fmt.Sprintf("The body has more than %d bytes.", limit)}
	raw := r.event.Body
	if !r.event.IsBase64Encoded {
		if len(raw) > limit {
			return nil, tooLarge
		}
		return []byte(raw), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(raw)
	switch {
	case err != nil:
		return nil, invalid(fieldError{"#", "the event's body is not base64"})
	case len(decoded) > limit:
		return nil, tooLarge
	}
	return decoded, nil
}

// isJSON reports whether a Content-Type is JSON in UTF-8. A missing one is taken
// as that.
func isJSON(contentType string) bool {
	if strings.TrimSpace(contentType) == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != mediaJSON {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// invalid is INVALID_REQUEST with the faults it names.
func invalid(fields ...fieldError) *refusal { return &refusal{code: codeInvalid, fields: fields} }

func badCursor() *refusal {
	return invalid(fieldError{"#/cursor", "is not a cursor that an earlier page gave"})
}
