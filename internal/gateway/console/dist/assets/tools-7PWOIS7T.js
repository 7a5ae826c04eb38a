/* Licences of the libraries in this file: NOTICE.txt */
import{i as a,j as b,k as c}from"./chunk-OTW4SRI6.js";import"./chunk-FPNDKDQG.js";import"./chunk-CEU72ERE.js";import"./chunk-PJGPQZAK.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
