/* The pass over the first layer for batches of 4, in C with everything in registers: what circuitsim/layered/tiles.py is
   compared with. Needs AVX-512.
   gcc -O3 -march=native -mprefer-vector-width=512 -ffp-contract=fast -shared -fPIC tile_pass.c -o tile_pass.so */
#include <immintrin.h>
#include <stddef.h>
typedef __m512 v16;
static inline v16 ld(const float *p) { return _mm512_loadu_ps(p); }
static inline void st(float *p, v16 v) { _mm512_storeu_ps(p, v); }
static inline v16 sp(float x) { return _mm512_set1_ps(x); }
#define MX(a, b) _mm512_max_ps(a, b)

void tile_pass(float*restrict pm,int tiles,int D,const int*restrict slotp,const float*restrict xp,const int*restrict slotn,const float*restrict xn,
  const float*restrict d,const float*restrict q,float*restrict sums,float*restrict out,int m){
  const v16 z=sp(0.f);
  for(int t=0;t<tiles;t++){
    float*w=pm+(size_t)t*D*64; int c=t*32;
    v16 d00=ld(d+c),d01=ld(d+c+16),d10=ld(d+m+c),d11=ld(d+m+c+16),d20=ld(d+2*m+c),d21=ld(d+2*m+c+16),d30=ld(d+3*m+c),d31=ld(d+3*m+c+16);
    v16 q0=ld(q+c),q1=ld(q+c+16);
    v16 a00=z,a01=z,a10=z,a11=z,a20=z,a21=z,a30=z,a31=z,s0=z,s1=z;
    for(int j=0;j<D;j++,w+=64){
      v16 p0=ld(w),p1=ld(w+16),m0=ld(w+32),m1=ld(w+48);
      int k=slotp[j];
      if(k>=0){
        const float*x=xp+4*k; v16 x0=sp(x[0]),x1=sp(x[1]),x2=sp(x[2]),x3=sp(x[3]);
        v16 u0=x0*d00+x1*d10+x2*d20+x3*d30, u1=x0*d01+x1*d11+x2*d21+x3*d31;
        p0+=u0;p1+=u1;m0-=u0;m1-=u1;
      }
      p0=MX(p0-q0,z);p1=MX(p1-q1,z);m0=MX(m0-q0,z);m1=MX(m1-q1,z);
      st(w,p0);st(w+16,p1);st(w+32,m0);st(w+48,m1);
      s0+=p0+m0;s1+=p1+m1;
      k=slotn[j];
      if(k>=0){
        const float*x=xn+4*k; v16 x0=sp(x[0]),x1=sp(x[1]),x2=sp(x[2]),x3=sp(x[3]);
        p0-=m0;p1-=m1;
        a00+=x0*p0;a01+=x0*p1;a10+=x1*p0;a11+=x1*p1;a20+=x2*p0;a21+=x2*p1;a30+=x3*p0;a31+=x3*p1;
      }
    }
    st(sums+c,s0);st(sums+c+16,s1);
    st(out+c,a00);st(out+c+16,a01);st(out+m+c,a10);st(out+m+c+16,a11);st(out+2*m+c,a20);st(out+2*m+c+16,a21);st(out+3*m+c,a30);st(out+3*m+c+16,a31);
  }
}
