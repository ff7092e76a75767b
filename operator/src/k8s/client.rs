//! Edge (writes). Limits how many requests to the API server are in flight, and logs the requests that fail.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use tokio::sync::Semaphore;
use tower::{BoxError, Service};
use tracing::warn;

/// Requests in flight. A thousand servers that are created at once would otherwise send hundreds of requests at the same moment. The API
/// server then answers late, and refuses creates of Services because its allocator of addresses is too busy. A watch counts until it begins.
const MAX_IN_FLIGHT: usize = 32;

/// A client for this cluster. All its clones share the limit.
///
/// # Errors
/// When the configuration is not usable.
pub(crate) fn limited_client(cluster: kube::Config) -> kube::Result<Client> {
    let in_flight = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
    let layer = tower::layer::layer_fn(move |inner| LimitedService { inner, in_flight: Arc::clone(&in_flight) });
    Ok(ClientBuilder::try_from(cluster)?.with_layer(&layer).build())
}

/// Sends requests to the API server, only some of them at a time.
struct LimitedService<S> {
    inner: S,
    in_flight: Arc<Semaphore>,
}

impl<S, B> Service<Request<Body>> for LimitedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (verb, object) = (request.method().clone(), request.uri().path().to_owned());
        // Nothing is sent before this future is polled.
        let answer = self.inner.call(request);
        let in_flight = Arc::clone(&self.in_flight);
        Box::pin(async move {
            let _permit = in_flight.acquire_owned().await?;
            let answer = answer.await.map_err(Into::into);
            match &answer {
                Ok(answer) if is_failure(answer.status()) => {
                    warn!(%verb, object, status = answer.status().as_u16(), "the API server refused a request");
                }
                Ok(_) => {}
                Err(error) => warn!(%verb, object, error = %error, "a request to the API server failed"),
            }
            answer
        })
    }
}

/// Whether an admin should know of the answer. All others are expected, or are reported by the pass that gets them.
fn is_failure(status: StatusCode) -> bool {
    status.is_server_error()
        || [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS].contains(&status)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn requests_in_flight_are_limited() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counted = (Arc::clone(&now), Arc::clone(&most));
        let inner = tower::service_fn(move |_: Request<Body>| {
            let (now, most) = counted.clone();
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, BoxError>(Response::new(Body::empty()))
            }
        });
        let mut limited = LimitedService { inner, in_flight: Arc::new(Semaphore::new(3)) };
        let answers = (0..20).map(|_| limited.call(Request::new(Body::empty()))).collect::<Vec<_>>();
        assert!(join_all(answers).await.iter().all(Result::is_ok));
        assert_eq!((now.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (0, 3));
    }

    #[test]
    fn only_unexpected_answers_are_logged() {
        let is_logged = |code: u16| is_failure(StatusCode::from_u16(code).unwrap());
        assert!([401, 403, 429, 500, 503, 504].into_iter().all(is_logged));
        assert!(![200, 201, 404, 409, 410, 422].into_iter().any(is_logged));
    }
}
