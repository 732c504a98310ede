package invoke

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Handler returns the HTTP side: the Invoke call of Lambda's API, and
// GET /on-failure, which lists the records of events given up as a JSON array.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", s.serveInvoke)
	mux.HandleFunc("GET /on-failure", s.serveRecords)
	return mux
}

func (s *Server) serveInvoke(w http.ResponseWriter, r *http.Request) {
	name := FunctionName(r.PathValue("name"))
	kind := r.Header.Get("X-Amz-Invocation-Type")
	limit := MaxSyncPayload
	switch kind {
	case "", "RequestResponse", "DryRun":
	case "Event":
		limit = MaxAsyncPayload
	default:
		refuse(w, http.StatusBadRequest, "InvalidParameterValueException",
			fmt.Sprintf("Unsupported invocation type %q", kind))
		return
	}

	payload, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not read the request body")
		return
	}
	size := max(int64(len(payload)), r.ContentLength)
	if size > int64(limit) {
		if kind == "" {
			kind = "RequestResponse"
		}
		refuse(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException",
			fmt.Sprintf("%d byte payload is too large for the %s invocation type (limit %d bytes)", size, kind, limit))
		return
	}
	if _, ok := s.functions[name]; !ok {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+arn(name))
		return
	}
	if len(payload) == 0 {
		payload = []byte("{}") // what Lambda gives a function that is invoked with nothing
	}
	if !json.Valid(payload) {
		refuse(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
		return
	}

	switch kind {
	case "DryRun":
		w.Header().Set("X-Amzn-Requestid", newRequestID())
		w.WriteHeader(http.StatusNoContent)
	case "Event":
		id, err := s.Queue(name, payload)
		if err != nil {
			s.refuseErr(w, err)
			return
		}
		w.Header().Set("X-Amzn-Requestid", id)
		w.WriteHeader(http.StatusAccepted)
	default:
		s.serveSync(w, r, name, payload)
	}
}

func (s *Server) serveSync(w http.ResponseWriter, r *http.Request, name string, payload []byte) {
	out, err := s.Call(r.Context(), name, payload)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Amz-Executed-Version", "$LATEST")
	h.Set("X-Amzn-Requestid", newRequestID())
	var fail *FunctionError
	switch {
	case errors.As(err, &fail):
		h.Set("X-Amz-Function-Error", "Unhandled")
		_, _ = w.Write(fail.body())
	case err != nil:
		s.refuseErr(w, err)
	default:
		_, _ = w.Write(out)
	}
}

func (s *Server) serveRecords(w http.ResponseWriter, _ *http.Request) {
	records := s.GivenUp()
	if records == nil {
		records = []Record{}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(records)
}

// refuseErr answers an error that is not the function's own. Only ErrClosing and
// a caller that went away reach it: the rest was checked before.
func (s *Server) refuseErr(w http.ResponseWriter, err error) {
	s.log.Warn("invocation refused", "error", err)
	refuse(w, http.StatusServiceUnavailable, "ServiceException", "The service is shutting down")
}

// refuse answers in the form that the AWS SDK reads: the error's name in a
// header, the rest as JSON.
func refuse(w http.ResponseWriter, status int, name, message string) {
	kind := "User"
	if status >= http.StatusInternalServerError {
		kind = "Service"
	}
	b, _ := json.Marshal(map[string]string{"Type": kind, "Message": message}) // strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", name)
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// FunctionName takes the name out of what a caller may say instead of it: a
// partial or whole ARN, or a name with a version.
func FunctionName(s string) string {
	if i := strings.LastIndex(s, "function:"); i >= 0 {
		s = s[i+len("function:"):]
	}
	name, _, _ := strings.Cut(s, ":")
	return name
}
